// Parts that the topics share: sliders, choices, vectors as text, and sentences that say what holds.

import { el, fill, saveButtons } from "../base.js";
import { drawBars } from "../bars.js";

/** A number with digits enough to compare it. */
export function say(value, digits = 3) {
  if (value === null || value === undefined) return "∞";
  const size = Math.abs(value);
  if (size !== 0 && (size < 10 ** -digits || size >= 1e6)) return value.toExponential(2);
  return Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
}

export const tuple = (vector, digits = 2) => `(${vector.map((c) => Number(c.toFixed(digits)) + 0).join(", ")})`;

/** A slider with its number. `set(value)` moves it. */
export function slider({ label, min, max, step, format = say, onInput }) {
  const shown = el("output", {});
  const input = el("input", { type: "range", min, max, step, "aria-label": label, oninput: () => { write(); onInput(Number(input.value)); } });
  const write = () => {
    shown.textContent = format(Number(input.value));
    input.setAttribute("aria-valuetext", shown.textContent);
  };
  return {
    element: el("label", { class: "slider" }, el("span", {}, label), input, shown),
    set(value) { input.value = value; write(); },
  };
}

/** A choice of one of several; options are [value, name]. */
export function choice({ label, options, onPick }) {
  const buttons = options.map(([value, name]) => el("button", {
    type: "button", "aria-pressed": "false", dataset: { value }, onclick: () => onPick(value),
  }, name));
  return {
    element: el("div", { class: "choice", role: "group", "aria-label": label }, el("span", { class: "muted" }, label), buttons),
    set(value) {
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.value === String(value)));
    },
  };
}

export function check({ label, onPick }) {
  const input = el("input", { type: "checkbox", onchange: () => onPick(input.checked) });
  return { element: el("label", {}, input, " ", label), set(value) { input.checked = value; } };
}

export const button = (name, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, name);

/** Vectors as a text, for exact numbers and for who cannot drag: 1,0;0,1. */
export function vectorsBox({ label, onPick }) {
  const input = el("input", {
    type: "text", spellcheck: "false", "aria-label": label, onchange: () => {
      const rows = parse(input.value);
      if (rows) onPick(rows);
    },
  });
  return { element: el("label", { class: "vectors" }, el("span", {}, label), input), set(rows) { input.value = write(rows); } };
}

export const write = (rows) => rows.map((row) => row.join(",")).join(";");

export function parse(text) {
  const rows = text.split(";").map((row) => row.split(/[\s,]+/).filter(Boolean).map(Number));
  const width = rows[0].length;
  return width > 0 && rows.every((row) => row.length === width && row.every(Number.isFinite)) ? rows : null;
}

/** A sentence that says whether what is shown is what is wanted; `good` is true, false or null. */
export function verdict() {
  const element = el("p", { class: "verdict here", role: "status" });
  return {
    element,
    set(good, ...parts) {
      element.className = `verdict here ${good === true ? "good" : good === false ? "warning" : ""}`;
      element.dataset.good = String(good);
      fill(element, good === true ? "✓ " : good === false ? "✗ " : "", el("span", {}, parts));
    },
  };
}

/** Bars that can be saved; rows and options as of `drawBars`. */
export function makeBars(name, label) {
  const box = el("div", { class: "chart-box" });
  return {
    element: el("figure", { class: "figure" }, el("h3", {}, label), box, el("figcaption", {}, saveButtons(() => box.querySelector("svg"), name))),
    draw: (rows, options = {}) => drawBars(box, rows, { label, ...options }),
  };
}

/** Rows of bars for the weights of keys. */
export const weightRows = (weights, names = keyNames(weights.length)) =>
  weights.map((value, i) => ({ name: names[i], value, number: value.toFixed(4) }));

export const keyNames = (count) => Array.from({ length: count }, (_, i) => `k${sub(i + 1)}`);
export const sub = (text) => [...String(text)].map((c) => "₀₁₂₃₄₅₆₇₈₉"[c] ?? c).join("");

/** A folded part of the page. */
export const fold = (title, ...children) => el("details", {}, el("summary", {}, title), children);
