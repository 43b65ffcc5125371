// Runs: every run and study below the folder, as it is now.

import { api, debounce, el, fill, linkButton, showError, state } from "./base.js";
import { listen } from "./events.js";
import { setUpComparison } from "./runs_compare.js";
import { RowView, reportLink } from "./runs_rows.js";
import { COLUMNS, compareRows, matches, readView } from "./runs_order.js";

const $ = (id) => document.getElementById(id);
const PAGE = 1000;
const BETWEEN = "//";

const views = new Map();
let selected = new Set();
let order = [];
let most = PAGE;
let whole = false;
let anchor = null;

const actions = {
  select(name, on, range) {
    const names = order.slice(0, most).map((row) => row.name);
    const [from, to] = [names.indexOf(anchor), names.indexOf(name)].sort((a, b) => a - b);
    const chosen = range && from >= 0 ? names.slice(from, to + 1) : [name];
    for (const one of chosen) on ? selected.add(one) : selected.delete(one);
    anchor = name;
    state.set({ select: [...selected].join(BETWEEN) });
    showSelection();
  },
  study(name) {
    state.set({ study: name, q: null, state: null }, { push: true });
    restore();
    $("study").focus();
  },
  async run(verb, name) {
    const answer = await api(`/api/runs/${verb}`, { name }).catch(() => null);
    say(answer === null ? "" : verb === "stop" ? `${name}: ${answer.message}` : `${name}: it goes on.`);
    return answer !== null;
  },
};
const comparison = setUpComparison($("comparison"), $("compared"), (name) => views.get(name)?.row);

function say(text) {
  $("said").textContent = text;
  $("said").hidden = !text;
}

function setUp() {
  fill($("heads"), COLUMNS.map((column) => el("th", { scope: "col", class: column.class, dataset: { key: column.key ?? "" } },
    column.key ? el("button", { type: "button", class: "sort", onclick: () => sortBy(column.key) }, column.title)
      : el("span", { class: column.hidden ? "hidden-text" : "" }, column.title))));
  fill($("sort"), COLUMNS.filter((column) => column.key).map((column) => el("option", { value: column.key }, column.title.toLowerCase())));
  $("sort").addEventListener("change", () => change({ sort: $("sort").value === "state" ? null : $("sort").value, reverse: null }));
  $("query").addEventListener("input", debounce(() => change({ q: $("query").value }), 120));
  $("state").addEventListener("change", () => change({ state: $("state").value }));
  $("inside").addEventListener("change", () => change({ inside: $("inside").checked ? 1 : null }));
  $("study").addEventListener("click", () => { change({ study: null }); $("query").focus(); });
  $("more").addEventListener("click", () => { most += PAGE; order = []; arrange(); });
  $("clear").addEventListener("click", () => {
    selected = new Set();
    state.set({ select: null, compare: null });
    showSelection();
    $("query").focus();
  });
  $("compare").addEventListener("click", () => {
    state.set({ compare: state.get().compare ? null : 1 }, { push: true });
    showSelection();
    if (state.get().compare) $("comparison-title").focus();
  });
  $("tools").addEventListener("submit", (event) => event.preventDefault());
  fill($("link"), linkButton());
  state.onChange(restore);
}

function change(changes) {
  state.set(changes);
  restore();
}

function sortBy(key) {
  const view = readView();
  const reverse = view.sort === key ? !view.reverse : false;
  change({ sort: key === "state" ? null : key, reverse: reverse ? 1 : null });
}

/** Show what the address says. */
function restore() {
  const view = state.get();
  if ($("query") !== document.activeElement) $("query").value = view.q ?? "";
  $("state").value = view.state ?? "";
  $("inside").checked = Boolean(view.inside);
  $("study").hidden = !view.study;
  $("study").textContent = view.study ? `Runs of ${view.study} ×` : "";
  $("study").setAttribute("aria-label", view.study ? `Runs of ${view.study}: show all again` : "");
  selected = new Set((view.select ?? "").split(BETWEEN).filter(Boolean));
  most = PAGE;
  const { sort, reverse } = readView();
  $("sort").value = sort;
  for (const head of $("heads").children) {
    if (!head.dataset.key) continue;
    if (head.dataset.key === sort) head.setAttribute("aria-sort", reverse ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }
  arrange();
  showSelection();
}

/** Put the rows in order. Rows that stay where they are are not touched. */
function arrange() {
  const view = readView();
  const rows = [...views.values()].map((one) => one.row);
  const shown = rows.filter((row) => matches(row, view)).sort((a, b) => compareRows(a, b, view));
  const body = $("rows");
  const same = shown.length === order.length && shown.every((row, i) => row.name === order[i].name);
  order = shown;
  if (!same) {
    const elements = shown.slice(0, most).map((row) => views.get(row.name).element());
    const focused = document.activeElement;
    if (!body.children.length) body.replaceChildren(...elements);
    else {
      const kept = new Set(elements);
      for (const child of [...body.children]) if (!kept.has(child)) child.remove();
      elements.forEach((element, i) => {
        if (body.children[i] !== element) body.insertBefore(element, body.children[i] ?? null);
      });
      if (body.contains(focused) && focused !== document.activeElement) focused.focus({ preventScroll: true });
    }
  }
  count(rows, shown);
}

function count(rows, shown) {
  const running = rows.filter((row) => row.state === "running" && !row.study).length;
  const all = rows.filter((row) => !row.study).length;
  const inside = rows.length - all;
  const parts = [`${shown.length.toLocaleString("en")} shown`, `${all.toLocaleString("en")} runs and studies`];
  if (inside) parts.push(`${inside.toLocaleString("en")} runs in studies`);
  parts.push(running ? `${running} at work` : "none at work");
  const text = whole ? `${parts.join(", ")}.` : `Looking at the folder: ${rows.length.toLocaleString("en")} so far…`;
  if ($("count").textContent !== text) $("count").textContent = text;
  $("empty").hidden = !whole || rows.length > 0;
  $("table").hidden = rows.length === 0;
  $("more").hidden = shown.length <= most;
}

function showSelection() {
  for (const [name, view] of views) view.setSelected(selected.has(name));
  const names = [...selected].filter((name) => !whole || views.has(name));
  $("selection").hidden = names.length === 0;
  $("selected").textContent = names.length === 1 ? "1 selected" : `${names.length} selected`;
  $("compare").disabled = names.length < 2;
  $("report").href = reportLink(names);
  const open = Boolean(state.get().compare) && names.length > 1;
  $("compare").setAttribute("aria-expanded", String(open));
  $("compare").textContent = open ? "Hide the comparison" : "Compare";
  comparison.show(open ? names : []);
}

function update({ rows, gone, whole: complete }) {
  for (const row of rows) {
    const view = views.get(row.name);
    if (view) view.update(row);
    else views.set(row.name, new RowView(row, actions));
  }
  for (const name of gone) forget(name);
  const first = complete && !whole;
  whole = whole || complete;
  arrange();
  if (first || gone.length) showSelection();
  else if (rows.some((row) => selected.has(row.name))) comparison.refresh();
  for (const row of rows) if (selected.has(row.name)) views.get(row.name).setSelected(true);
}

function forget(name) {
  views.get(name)?.remove();
  views.delete(name);
}

setUp();
restore();
listen("/api/runs/events", {
  all(change) {
    const names = new Set(change.rows.map((row) => row.name));
    if (change.whole) [...views.keys()].filter((name) => !names.has(name)).forEach(forget);
    showError("");
    update(change);
  },
  changes: update,
});
