// One row of the list: its cells are written again only when what they show has changed.

import { duration, el, fill, svg } from "./base.js";

const SPARK = { width: 96, height: 26 };

/** The address of the report on some runs. */
export function reportLink(names) {
  return `/api/runs/report?${names.map((name) => `name=${encodeURIComponent(name)}`).join("&")}`;
}

/** A row of the table. `actions` say what a person can do: `select`, `study`, `run`. */
export class RowView {
  constructor(row, actions) {
    this.row = row;
    this.actions = actions;
    this.tr = null;
    this.shown = {};
  }

  /** The element, which is made when it is first listed. */
  element() {
    if (!this.tr) {
      this.box = el("input", {
        type: "checkbox", "aria-label": `Select ${this.row.name}`, checked: this.selected ?? false,
        onclick: (event) => this.actions.select(this.row.name, event.currentTarget.checked, event.shiftKey),
      });
      this.cells = Object.fromEntries(CELLS.map(([name, , how]) => [name, el(name === "name" ? "th" : "td", { class: how })]));
      this.tr = el("tr", {}, el("td", { class: "pick" }, this.box), Object.values(this.cells));
      this.cells.name.setAttribute("scope", "row");
      this.draw();
    }
    return this.tr;
  }

  update(row) {
    this.row = row;
    if (this.tr) this.draw();
  }

  draw() {
    this.tr.className = `${this.row.state} ${this.row.kind}`;
    for (const [name, write, , of] of CELLS) {
      const key = JSON.stringify(of(this.row));
      if (this.shown[name] === key) continue;
      this.shown[name] = key;
      const focused = this.cells[name].contains(document.activeElement) ? document.activeElement.textContent : null;
      fill(this.cells[name], write(this.row, this.actions));
      if (focused !== null) {
        const again = [...this.cells[name].querySelectorAll("a, button")];
        (again.find((one) => one.textContent === focused) ?? again[0])?.focus({ preventScroll: true });
      }
    }
  }

  setSelected(on) {
    this.selected = on;
    if (this.box) this.box.checked = on;
  }

  remove() {
    this.tr?.remove();
  }
}

// Name, what writes the cell, its class, and what of the row it shows.
const CELLS = [
  ["name", writeName, "name", (row) => [row.name, row.kind, row.question, row.model, row.task, row.method, row.note, row.runs, row.over]],
  ["state", writeState, "state", (row) => [row.state, row.work, row.reason]],
  ["score", writeScore, "number score", (row) => row.score],
  ["spark", (row) => drawSpark(row.spark), "spark", (row) => row.spark],
  ["checks", writeChecks, "checks", (row) => [row.checks, row.state === "finished"]],
  ["time", (row) => (row.seconds === null ? "" : duration(row.seconds)), "number time", (row) => row.seconds],
  ["changed", writeChanged, "number changed", (row) => Math.floor(row.changed / 60)],
  ["do", writeActions, "do", (row) => [row.name, row.kind, row.state, row.stops, row.resumes, row.answers, row.runs]],
];

function writeName(row) {
  const about = row.kind === "run"
    ? [row.method ? `${row.model}, ${row.method}` : row.model, row.task ? `on ${row.task}` : ""].filter(Boolean).join(" ")
    : row.question;
  return [
    row.state === "damaged" ? el("span", { class: "text" }, row.name)
      : el("a", { class: "text", href: reportLink([row.name]), target: "_blank", rel: "noopener" }, row.name),
    el("div", { class: "muted note text" }, about),
    row.note ? el("div", { class: "note text" }, row.note) : null,
  ];
}

const WORDS = {
  running: "running", starting: "starting", queued: "queued", finished: "finished", stopped: "stopped",
  failed: "failed", pruned: "stopped early", damaged: "damaged",
};

function writeState(row) {
  const badge = el("span", { class: `badge ${row.state}` }, WORDS[row.state]);
  const why = row.reason ? el("div", { class: "note text why" }, row.reason) : null;
  if (row.state !== "running") return [badge, why];
  const { work } = row;
  if (!work) return [badge, why];
  const share = work.total ? Math.min(1, work.done / work.total) : null;
  const label = work.label.replace(/ \(.*\)$/, "");
  const meter = el("progress", { max: 1, "aria-label": `${row.name}: ${label}` });
  if (share !== null) meter.value = share;
  const far = work.label === "runs" ? `${work.done} of ${work.total} runs` : share === null ? `${label} ${work.done}` : `${label} ${Math.floor(100 * share)} %`;
  const left = work.left === null ? "" : `, ${duration(work.left)} left`;
  return [el("div", { class: "row tight" }, badge, meter), el("div", { class: "note", title: work.note }, far + left), why];
}

const digits = (value) => (Math.abs(value) < 10 ? value.toFixed(3) : value.toPrecision(4));

function writeScore(row) {
  if (!row.score) return "";
  const { value, low, high, metric, split } = row.score;
  const between = low === null || high === null ? "" : `${digits(low)} to ${digits(high)}`;
  return [
    el("strong", {}, digits(value)),
    between ? el("div", { class: "muted note", title: "95 % interval" }, between) : null,
    el("div", { class: "muted note" }, `${metric}, ${split}`),
  ];
}

/** A small curve of the scores of dev. */
export function drawSpark(values) {
  if (!values.length) return null;
  const { width, height } = SPARK;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const x = (i) => 3 + (i / Math.max(1, values.length - 1)) * (width - 6);
  const y = (value) => height - 3 - ((value - least) / (most - least || 1)) * (height - 6);
  const points = values.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const said = values.length === 1 ? `dev ${digits(values[0])}`
    : `dev from ${digits(values[0])} to ${digits(values.at(-1))}, between ${digits(least)} and ${digits(most)}`;
  return svg("svg", { class: "sparkline", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said },
    svg("title", {}, said),
    svg("polyline", { points, fill: "none" }),
    svg("circle", { cx: x(values.length - 1), cy: y(values.at(-1)), r: 2.5 }));
}

function writeChecks(row) {
  if (!row.checks.length) return row.state === "finished" ? el("span", { class: "muted note" }, "fine") : "";
  const [first, ...rest] = row.checks;
  const line = (check) => el("li", { class: check.status === "failed" ? "bad" : "warning", title: check.message },
    `${check.status === "failed" ? "problem" : "caution"}: ${check.text}`);
  if (rest.length < 2) return el("ul", { class: "plain note" }, row.checks.map(line));
  return [
    el("ul", { class: "plain note" }, line(first)),
    el("details", { class: "note" }, el("summary", {}, `and ${rest.length} more`), el("ul", { class: "plain" }, rest.map(line))),
  ];
}

function writeChanged(row) {
  const date = new Date(1000 * row.changed);
  const today = date.toDateString() === new Date().toDateString();
  const shown = today ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString([], { year: "numeric", month: "short", day: "numeric" });
  return el("time", { datetime: date.toISOString(), title: date.toLocaleString() }, shown);
}

function writeActions(row, actions) {
  const act = (verb, label) => el("button", {
    type: "button", "aria-label": `${label} ${row.name}`,
    onclick: async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      if (!(await actions.run(verb, row.name))) button.disabled = false;
    },
  }, label);
  const link = (path, key, label) => el("a", {
    href: `${path}#${key}=${encodeURIComponent(row.name)}`, "aria-label": `${label} ${row.name}`,
  }, label);
  return el("div", { class: "row tight" },
    row.kind === "solve" ? link("/solve", "solve", ["running", "starting"].includes(row.state) ? "Watch" : "Solution") : null,
    row.runs && row.kind !== "run" ? el("button", {
      type: "button", class: "quiet", "aria-label": `Show the runs of ${row.name}`, onclick: () => actions.study(row.name),
    }, `${row.runs} ${row.runs === 1 ? "run" : "runs"}`) : null,
    row.answers ? link("/try-it", "model", "Try it") : null,
    row.stops ? act("stop", "Stop") : null,
    row.resumes ? act("resume", "Resume") : null);
}
