// Bars with their names and numbers, as one SVG figure: probabilities, tokens, what words contribute.

import { fill, svg } from "./base.js";

const ROW = 26;
const NUMBER = 74;

/** Draw rows of bars in an element, again whenever its width changes.
 *
 * A row has a `name`, a `value`, the text `number`, and maybe `kind` (a class of the bar), `note` (its title), `mark`
 * (a value with a line, such as a threshold) and `pick` (what choosing the row does; with it a row is a button).
 * Options: `label` (what the figure shows, for those who cannot see it), `most` (the value of a whole bar) and
 * `signed` (bars go both ways from the middle). */
export function drawBars(element, rows, options = {}) {
  let width = 0;
  let picking = null;
  const draw = () => {
    const now = Math.round(element.clientWidth);
    if (!now || now === width) return;
    width = now;
    fill(element, makeBars(rows, width, options));
    if (picking !== null) element.querySelectorAll("[role=button]")[picking]?.focus();
  };
  element.observer?.disconnect();
  element.observer = new ResizeObserver(() => {
    const buttons = [...element.querySelectorAll("[role=button]")];
    const at = buttons.indexOf(document.activeElement);
    picking = at < 0 ? null : at;
    draw();
  });
  width = 0;
  draw();
  element.observer.observe(element);
}

function makeBars(rows, width, { label = "", most = null, signed = false }) {
  const longest = Math.max(...rows.map((row) => row.name.length), 4);
  const names = Math.min(Math.max(60, longest * 8 + 12), width * 0.42, 320);
  const room = Math.max(20, width - names - NUMBER);
  const whole = most ?? Math.max(...rows.map((row) => Math.abs(row.value)), 1e-12);
  const zero = names + (signed ? room / 2 : 0);
  const scale = (signed ? room / 2 : room) / whole;
  const figure = svg("svg", {
    class: "bars", width, height: rows.length * ROW + 4, viewBox: `0 0 ${width} ${rows.length * ROW + 4}`,
    role: rows.some((row) => row.pick) ? "group" : "img", "aria-label": label,
  });
  rows.forEach((row, i) => figure.append(makeRow(row, i * ROW + 2, { names, width, zero, scale })));
  return figure;
}

function makeRow(row, y, { names, width, zero, scale }) {
  const size = Math.max(1, Math.abs(row.value) * scale);
  const left = row.value < 0 ? zero - size : zero;
  const said = `${row.name}: ${row.number}${row.note ? `, ${row.note}` : ""}`;
  const button = row.pick && {
    role: "button", tabindex: 0, "aria-label": said, onclick: row.pick,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      row.pick();
    },
  };
  return svg(
    "g", { class: `bar-row ${row.kind ?? ""}${row.pick ? " pick" : ""}`, ...button },
    svg("title", {}, said),
    svg("rect", { class: "behind", x: 0, y, width, height: ROW - 2, rx: 4 }),
    svg("text", { x: names - 8, y: y + ROW / 2, "text-anchor": "end", "dominant-baseline": "central" },
      shorten(row.name, Math.floor((names - 12) / 7.6))),
    svg("rect", { class: `one ${row.value < 0 ? "minus" : ""}`, x: left, y: y + 4, width: size, height: ROW - 10, rx: 2 }),
    row.mark === undefined || row.mark === null ? null : svg("line", {
      class: "mark", x1: zero + row.mark * scale, x2: zero + row.mark * scale, y1: y + 1, y2: y + ROW - 3,
    }),
    svg("text", { class: "figure", x: width - 4, y: y + ROW / 2, "text-anchor": "end", "dominant-baseline": "central" },
      row.number),
  );
}

/** Cut a text after this many characters. */
export function shorten(text, most) {
  const characters = [...text];
  return characters.length <= most ? text : `${characters.slice(0, Math.max(1, most - 1)).join("")}…`;
}
