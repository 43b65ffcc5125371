// A solution while it is made and after: its time, the picture of its candidates, its answer.

import { api, duration, el, fill, showError, state } from "./base.js";
import { drawChart } from "./charts.js";
import { listen } from "./events.js";
import { reportLink } from "./runs_rows.js";

const WORDS = { running: "At work", starting: "Starting", finished: "Finished", stopped: "Stopped", failed: "Failed" };

/** Set up the view of one solution; `open(name)` shows one, "" none. `changed` is called when its state changes. */
export function setUpSolution({ title, now, answer, log }, changed) {
  let end = () => {};
  let name = "";
  let last = null;
  let received = 0;
  const drawn = new Map();
  const clock = makeClock();

  setInterval(() => {
    if (last?.state === "running") clock.tick(last, (Date.now() - received) / 1000);
  }, 1000);

  function open(wanted) {
    if (wanted === name) return;
    end();
    end = () => {};
    name = wanted;
    last = null;
    drawn.clear();
    for (const part of [now, answer, log]) fill(part);
    title.textContent = wanted;
    if (wanted) end = listen(`/api/solve/events?name=${encodeURIComponent(wanted)}`, { solution: show });
  }

  function show(solution) {
    received = Date.now();
    const before = last;
    last = solution;
    if (before?.state !== solution.state) {
      fill(now, writeState(solution, clock));
      if (before) changed();
    }
    clock.tick(solution, 0);
    clock.work.textContent = solution.now;
    if (JSON.stringify(before?.answer) !== JSON.stringify(solution.answer) || before?.state !== solution.state) {
      showAnswer(answer, solution, drawn);
    }
    if (JSON.stringify(before?.log) !== JSON.stringify(solution.log)) showLog(log, solution);
  }

  return { open };
}

function makeClock() {
  const meter = el("progress", { max: 1, "aria-label": "Time that is over" });
  const left = el("span");
  const work = el("p", { class: "muted note text" });
  return {
    meter, left, work,
    tick({ spent, total, state: now }, more) {
      meter.hidden = left.hidden = !total || now !== "running";
      if (!total) return;
      meter.value = Math.min(1, (spent + more) / total);
      const rest = Math.max(0, total - spent - more);
      left.textContent = rest > 0 ? `${duration(rest)} of ${duration(total)} left` : "the answer is being written";
    },
  };
}

function writeState(solution, clock) {
  const { name, state: now, reason } = solution;
  const act = (path, label, params = {}) => el("button", {
    type: "button",
    onclick: async (event) => {
      const button = event.currentTarget;
      button.disabled = true;
      await api(`/api/solve/${path}`, { name, ...params }).catch(() => { button.disabled = false; });
    },
  }, label);
  return [
    el("div", { class: "row" },
      el("strong", { class: `badge ${now}`, role: "status" }, WORDS[now]), clock.meter, clock.left,
      ["running", "starting"].includes(now) ? act("end", "End with the best so far") : null),
    now === "running" ? clock.work : null,
    reason ? el("p", { class: now === "failed" ? "problem text" : "muted text" }, reason) : null,
    ["finished", "stopped"].includes(now) || (now === "failed" && solution.answer) ? writeMore(solution) : null,
    now === "failed" && solution.source ? el("p", {},
      el("a", { href: `#source=${encodeURIComponent(solution.source)}` }, "Back to the file")) : null,
  ];
}

function writeMore(solution) {
  const minutes = el("input", {
    type: "number", min: 0.5, step: 0.5, max: 100000, required: true, "aria-label": "Minutes in all",
    value: Math.ceil((solution.total ?? 600) / 60) * (solution.state === "finished" ? 2 : 1),
  });
  return el("form", {
    class: "row", "aria-label": "Continue",
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        await api("/api/solve/extend", { name: solution.name, minutes: Number(minutes.value) });
        state.set({ solve: solution.name });
      } catch {
        // The line above the page says why.
      }
    },
  }, el("label", {}, "Minutes in all ", minutes), el("button", { type: "submit" }, "Continue"));
}

function showAnswer(element, solution, drawn) {
  const { answer, name, state: now } = solution;
  if (!answer) {
    fill(element, ["running", "starting"].includes(now)
      ? el("p", { class: "muted" }, "The first candidate appears here as soon as it is scored.") : null);
    return;
  }
  for (const [i, chart] of answer.charts.entries()) {
    if (!drawn.has(i)) drawn.set(i, { place: el("div", { class: "chart" }), key: "" });
    const one = drawn.get(i);
    const key = JSON.stringify(chart);
    if (one.key !== key) {
      one.key = key;
      queueMicrotask(() => drawChart(one.place, chart, `${name} ${chart.title.text}`));
    }
  }
  const finished = now === "finished";
  fill(element,
    el("section", { class: finished ? "card" : "", "aria-label": finished ? "Answer" : "Answer so far" },
      finished ? null : el("p", { class: "muted note" }, "So far:"),
      writeSummary(answer.summary, name, finished || now === "stopped")),
    answer.notes.map((note) => el("p", { class: `note text ${note.kind === "plain" ? "muted" : note.kind}` }, note.text)),
    el("div", { class: "charts" }, answer.charts.map((chart, i) => el("figure", {},
      drawn.get(i).place, answer.captions[i] ? el("figcaption", { class: "muted note" }, answer.captions[i]) : null))),
    answer.tables.map(writeTable));
}

/** Write sentences; indented lines are commands. */
function writeSummary(lines, name, usable) {
  const isCommand = (line) => line?.startsWith("  heedful ");
  const parts = lines.map((line, i) => {
    if (!isCommand(line)) {
      if (!usable && isCommand(lines[i + 1])) return null;
      return el("p", { class: `text ${i ? "" : "headline"} ${line.startsWith("  ") ? "indented" : ""}` }, line.trim());
    }
    if (!usable) return null;
    const command = line.trim();
    return el("div", { class: "command" }, el("code", {}, command), el("button", {
      type: "button", class: "quiet", "aria-label": `Copy ${command}`,
      onclick: async (event) => {
        const button = event.currentTarget;
        await navigator.clipboard?.writeText(command).catch(showError);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      },
    }, "Copy"));
  });
  const links = usable ? el("p", { class: "row" },
    el("a", { href: `/try-it#model=${encodeURIComponent(name)}` }, "Try it"),
    el("a", { href: reportLink([name]), target: "_blank", rel: "noopener" }, "Open the report"),
    el("a", { href: `/runs#study=${encodeURIComponent(name)}` }, "See its runs")) : null;
  return [parts, links];
}

function writeTable({ title, columns, rows }) {
  return el("section", {}, el("h3", { class: "text" }, title.charAt(0).toUpperCase() + title.slice(1)),
    el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", { class: "text" }, cell))))))));
}

function showLog(element, { log, command }) {
  const open = element.querySelector("details")?.open ?? false;
  fill(element, log.length || command.length ? el("details", { open }, el("summary", {}, "What it says while it works"),
    command.length ? el("p", {}, el("code", {}, `heedful ${command.join(" ")}`)) : null,
    el("ol", { class: "plain log" }, log.map((line) => el("li", { class: "text" }, line)))) : null);
}
