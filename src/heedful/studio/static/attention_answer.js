// What the model answers now, beside what it answered as it was made; and what each head does to that.

import { el, fill, percent, saveButtons } from "./base.js";
import { drawBars } from "./bars.js";
import { nameHead } from "./attention_data.js";

const MOST = 10;
const RANKED = 15;
const signed = (value, text) => `${value < 0 ? "−" : "+"}${text}`;

/** Show an answer: {kind, names, values, before}. */
export function showAnswer(element, { kind, names, values, before }, changed) {
  if (kind === "vector") {
    fill(element,
      el("p", { class: "headline" }, values[0].toFixed(3), " ", el("span", { class: "muted" }, "cosine")),
      el("p", { class: "muted note" }, changed
        ? "This model has no head: it gives the text a vector. The cosine of this vector with that of the unchanged model says how far the changes move it."
        : "This model has no head: it gives the text a vector. Change the attention, or switch heads off, and see how far the vector moves."));
    return;
  }
  if (kind === "number") {
    fill(element, el("p", { class: "headline" }, values[0].toPrecision(4)),
      changed && el("p", { class: "muted note" }, `As it was made: ${before[0].toPrecision(4)}`));
    return;
  }
  const order = names.map((_, i) => i);
  if (kind !== "ordered") order.sort((a, b) => values[b] - values[a]);
  const best = order.reduce((top, i) => (values[i] > values[top] ? i : top), order[0]);
  const chart = el("div", { class: "chart" });
  fill(element,
    el("p", { class: "headline text" }, kind === "token" ? `“${names[best]}”` : names[best], " ",
      el("span", { class: "muted" }, percent(values[best]))),
    chart, saveButtons(() => chart.querySelector("svg"), "answer under this attention"),
    el("p", { class: "muted note" },
      kind === "token" ? "The most probable tokens. " : "Probabilities as the model gives them, not calibrated. ",
      changed && "A dashed line marks the unchanged model."));
  drawBars(chart, order.slice(0, MOST).map((i) => ({
    name: names[i], value: values[i], number: percent(values[i]), mark: changed ? before[i] : null,
    kind: i === best ? "chosen" : "", note: changed ? `${percent(before[i])} as it was made` : "",
  })), { label: "What the model answers", most: 1 });
}

/** The effect of every head on one value of the answer, the largest first. */
export function listEffects(found, at) {
  const now = found.values[at];
  return found.layers.flatMap(({ part, layer, values, off }) => values.map((without, i) => ({
    part, layer, head: String(i + 1), without: without[at], change: without[at] - now, off: off.includes(i + 1),
  }))).filter((one) => !one.off).sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

/** How a change reads: percentage points, a cosine's loss, or a number. */
export function showChange(kind, change) {
  if (kind === "vector") return signed(change, Math.abs(change).toFixed(4));
  if (kind === "number") return signed(change, Math.abs(change).toPrecision(3));
  return signed(change, `${(100 * Math.abs(change)).toFixed(Math.abs(change) < 0.001 ? 3 : 1)} pp`);
}

/** Show heads ranked by effect; choosing one calls `toggle(part, layer, head)`. */
export function showEffects(element, found, at, effects, { toggle, parts }) {
  const chart = el("div", { class: "chart" });
  const what = { vector: "the text's vector (its cosine with the unchanged one)", number: "the number" }[found.kind]
    ?? `the probability of “${found.names[at]}”`;
  const title = (one) => (parts > 1 ? `${one.part}, ` : "") + nameHead(one.layer, one.head);
  fill(element,
    el("p", { class: "muted note" }, `Without a head, ${what} moves by this much; choose a head to switch it off. `,
      `${effects.length} heads, ${found.seconds.toFixed(1)} s of processor time.`),
    chart, saveButtons(() => chart.querySelector("svg"), "heads by effect"));
  drawBars(chart, effects.slice(0, RANKED).map((one) => ({
    name: title(one), value: one.change, number: showChange(found.kind, one.change),
    note: "switch it off", pick: () => toggle(one.part, one.layer, one.head),
  })), { label: `Heads by their effect on ${what}`, signed: true });
}
