// Which words carried an answer, and whether that can be trusted.

import { el, fill, saveButtons, vega } from "./base.js";
import { drawBars } from "./bars.js";

const MOST = 14;

/** Show an explanation; `progress` stays the first element. */
export function showExplanation(element, found, progress) {
  const most = Math.max(...found.words.map((word) => Math.abs(word.contribution)), 1e-12);
  const bars = el("div", { class: "chart" });
  const curve = el("div", { class: "chart" });
  const subject = found.label === null ? "the number"
    : `"${found.label}"${found.against === null ? "" : ` against "${found.against}"`}`;
  const verdict = found.deletion === null ? null : el("p", {
    class: `verdict ${found.deletion.trusted === true ? "good" : found.deletion.trusted === false ? "warning" : "muted"}`,
  }, found.deletion.trusted === true ? "✓ " : found.deletion.trusted === false ? "⚠ " : "", found.deletion.sentence);
  fill(element, progress,
    [found.text, ...(found.pair === null ? [] : [found.pair])].map((text, side) =>
      el("p", { class: "text shaded" }, shade(text, found.words.filter((word) => word.side === side), most))),
    el("p", { class: "muted legend" }, el("span", { class: "for" }, "for"), " and ",
      el("span", { class: "against" }, "against"), ` ${subject}`),
    verdict,
    found.sentences.filter((line) => line !== found.deletion?.sentence).map((line) => el("p", { class: "muted note" }, line)),
    el("h3", {}, "The words that count most"), bars,
    saveButtons(() => bars.querySelector("svg"), "words"));
  const strongest = [...found.words].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution)).slice(0, MOST);
  drawBars(bars, strongest.sort((a, b) => b.contribution - a.contribution).map((word) => ({
    name: word.text, value: word.contribution, number: signed(word.contribution),
  })), { label: `What words contribute to ${subject}`, most, signed: true });
  if (found.deletion !== null && found.deletion.removed.length > 1) {
    element.append(el("h3", {}, "The deletion test"), curve, saveButtons(() => curve.querySelector("svg"), "deletion test"));
    drawCurve(curve, found);
  }
}

const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toPrecision(2)}`;

function shade(text, words, most) {
  const parts = [];
  let end = 0;
  for (const word of words) {
    const [start, stop] = [position(text, word.start), position(text, word.end)];
    parts.push(text.slice(end, start));
    const share = Math.abs(word.contribution) / most;
    parts.push(el("span", {
      class: word.contribution < 0 ? "against" : "for", title: signed(word.contribution),
      style: { "--share": `${Math.round(70 * share)}%` },
    }, text.slice(start, stop)));
    end = stop;
  }
  return [...parts, text.slice(end)];
}

/** The position in a text of JavaScript, which counts some characters twice, of one that counts each once. */
function position(text, characters) {
  let at = 0;
  for (let i = 0; i < characters && at < text.length; i++) at += text.codePointAt(at) > 0xffff ? 2 : 1;
  return at;
}

function drawCurve(element, { deletion, label }) {
  const rows = deletion.removed.flatMap((removed, i) => [
    { removed, value: deletion.explained[i], order: "most important words first" },
    { removed, value: deletion.random[i], low: deletion.low[i], high: deletion.high[i], order: "random words" },
  ]);
  const x = { field: "removed", type: "quantitative", title: "words removed", axis: { tickMinStep: 1, format: "d" } };
  const order = { field: "order", type: "nominal", title: null, legend: { orient: "top" } };
  const title = label === null ? "the number" : "probability";
  vega(element, {
    data: { values: rows }, width: "container", height: 180, autosize: { type: "fit", contains: "padding" },
    layer: [
      {
        transform: [{ filter: "isValid(datum.low)" }], mark: { type: "area", opacity: 0.2 },
        encoding: { x, y: { field: "low", type: "quantitative", title }, y2: { field: "high" }, color: order },
      },
      {
        mark: { type: "line", point: true },
        encoding: {
          x, y: { field: "value", type: "quantitative", title }, color: order,
          tooltip: [{ field: "order" }, { field: "removed" }, { field: "value", format: ".3f" }],
        },
      },
    ],
  }).catch((error) => fill(element, el("p", { class: "warning" }, `${error.message ?? error}`)));
}
