// The answer of one model to one text.

import { el, fill, percent, saveButtons } from "./base.js";
import { drawBars } from "./bars.js";

const MOST = 12;

/** Show an answer: bars per label, a number, or a free answer. `right` is the right answer, where it is known. */
export function showAnswer(element, answer, { right } = {}) {
  const known = right === undefined ? null
    : el("p", {}, "The right answer is ", el("strong", { class: "text" }, right), ".");
  const notes = answer.notes.map((note) => el("p", { class: "muted note" }, note));
  if (answer.kind === "number") {
    fill(element, el("p", { class: "headline" }, answer.shown), known, notes);
    return;
  }
  const names = answer.answer.length ? answer.answer.join(", ") : "no label";
  const headline = el("p", { class: "headline text" }, names);
  if (answer.free || answer.answer.length === 1) {
    headline.append(" ", el("span", { class: "muted" }, percent(answer.confidence)));
  }
  if (answer.free) {
    fill(element, headline, known, notes);
    return;
  }
  const chart = el("div", { class: "chart" });
  fill(element, headline, known, chart,
    saveButtons(() => chart.querySelector("svg"), `answer ${answer.model}`), notes);
  drawBars(chart, listBars(answer), { label: answer.calibrated ? "Calibrated probabilities" : "Probabilities", most: 1 });
}

function listBars(answer) {
  const row = (bar) => ({
    name: bar.label, value: bar.probability, number: percent(bar.probability), mark: bar.threshold,
    kind: bar.chosen ? "chosen" : "",
    note: bar.threshold === null ? "" : `given from ${percent(bar.threshold)} on`,
  });
  // Ordered labels stay in their order, the others begin with the most probable one.
  const sorted = answer.kind === "ordered" ? answer.bars
    : [...answer.bars].sort((a, b) => b.probability - a.probability);
  if (sorted.length <= MOST + 1) return sorted.map(row);
  const rest = sorted.slice(MOST);
  const share = rest.reduce((sum, bar) => sum + bar.probability, 0);
  const more = answer.kind === "labels"
    ? { name: `${rest.length} others`, value: rest[0].probability, number: `≤ ${percent(rest[0].probability)}`, kind: "rest" }
    : { name: `${rest.length} others`, value: share, number: percent(share), kind: "rest" };
  return [...sorted.slice(0, MOST).map(row), more];
}
