// Several runs side by side: what the paired test says, their scores, curves and costs.

import { api, el, fill, progressBar } from "./base.js";
import { drawChart } from "./charts.js";

const AGAIN = 5000;

/** Set up the comparison in a section; `find(name)` returns the row of a run. `show([])` hides it. */
export function setUpComparison(section, element, find) {
  const bar = progressBar("Comparing");
  const content = el("div");
  fill(element, bar.element, content);
  let names = [];
  let shown = "";
  let timer = null;
  let asked = 0;

  async function compare() {
    clearTimeout(timer);
    timer = null;
    const turn = ++asked;
    shown = key();
    try {
      const found = await api("/api/runs/compare", { names }, { quiet: true, progress: bar.set });
      if (turn === asked) await draw(content, found.groups);
    } catch (error) {
      if (turn === asked && !error.canceled) fill(content, el("p", { class: "warning text" }, error.message));
    } finally {
      if (turn === asked) bar.set(null);
    }
  }

  /** What the comparison depends on. */
  const key = () => JSON.stringify(names.map((name) => {
    const row = find(name);
    return [name, row?.score ?? null, row?.spark.length ?? 0, row?.state ?? ""];
  }));

  return {
    show(chosen) {
      const same = chosen.join("//") === names.join("//");
      names = chosen;
      section.hidden = names.length === 0;
      if (names.length && (!same || !shown)) compare();
      if (!names.length) shown = "";
    },
    /** Compare again soon, if the runs have changed. */
    refresh() {
      if (!names.length || timer || key() === shown) return;
      timer = setTimeout(compare, AGAIN);
    },
  };
}

async function draw(element, groups) {
  const parts = groups.map((group) => {
    const charts = group.charts.map((chart) => ({ chart, place: el("div", { class: "chart" }) }));
    const section = el("section", {},
      groups.length > 1 ? el("h3", { class: "text" }, `${group.metric} on ${group.task}`) : null,
      group.sentences.map((line, i) => el("p", { class: i ? "text" : "text verdict" }, line)),
      el("div", { class: "charts" }, charts.map(({ place }) => place)),
      el("details", {}, el("summary", {}, "All numbers"), writeTable(group.table)));
    return { section, charts, group };
  });
  fill(element, parts.map(({ section }) => section));
  for (const { charts, group } of parts) {
    for (const { chart, place } of charts) await drawChart(place, chart, [chart.title.text, group.task].flat().join(" "));
  }
}

function writeTable({ columns, rows }) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col" }, column)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", { class: "text" }, cell)))))));
}
