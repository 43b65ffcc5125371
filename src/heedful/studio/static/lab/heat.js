// Matrices as pictures: attention weights, changes, and which token has heard of which.

import { el, fill, saveButtons, svg } from "../base.js";

/** Make a figure of a matrix. `draw` takes `label`, `values` (rows), `most` (the value of a full color; below zero
 * cells are of another color), `marks` (rows of true where a cell has a red frame), `rows` and `columns` (names),
 * `picked` (a column), `text(value)` (what is written in a cell), `tip(row, column)`, and `extra` ({title, values, most,
 * text, marks}): one more column, apart from the others. */
export function makeHeat(name, title = "", size = 22) {
  const picture = svg("svg", { class: "heat", role: "img" });
  const caption = el("span", { class: "muted note" });
  function draw({ label, values, most = 1, marks, rows, columns, picked = null, text, tip, extra, caption: said = "" }) {
    const [high, wide] = [values.length, values[0].length];
    const left = rows ? Math.max(...rows.map((row) => row.length)) * 7.5 + 8 : 2;
    const longest = Math.max(...(columns ?? [""]).map((column) => column.length));
    const tilted = longest > 5;
    const top = !columns ? 2 : tilted ? longest * 6 + 12 : 20;
    const [width, height] = [left + wide * size + 2 + (extra ? 2.2 * size + 16 : 0) + (tilted ? longest * 4 : 0), top + high * size + 2];
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": label })) picture.setAttribute(key, value);
    fill(picture,
      values.map((row, i) => row.map((value, j) => (value === null ? null : makeCell({
        value, most, text, x: left + j * size, y: top + i * size, wide: size, marked: marks?.[i][j], tip: tip?.(i, j),
      })))),
      extra && [
        svg("text", { x: left + (wide + 1.1) * size + 16, y: 14, "text-anchor": "middle", "font-size": 12 }, extra.title),
        extra.values.map((value, i) => makeCell({
          value, most: extra.most, text: extra.text, x: left + wide * size + 16, y: top + i * size, wide: 2.2 * size, marked: extra.marks[i],
        })),
      ],
      rows?.map((row, i) => svg("text", { x: left - 5, y: top + (i + 0.5) * size + 4, "text-anchor": "end", "font-size": 12 }, row)),
      columns?.map((column, j) => svg("text", {
        ...(tilted ? { transform: `translate(${left + (j + 0.5) * size + 2} ${top - 5}) rotate(-60)` } : { x: left + (j + 0.5) * size, y: 14, "text-anchor": "middle" }),
        "font-size": 12, "font-weight": j === picked ? 700 : 400,
      }, column)),
      picked === null ? null : svg("rect", { x: left + picked * size - 1, y: top - 1, width: size + 1, height: high * size + 1, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5 }));
    caption.textContent = said;
  }
  function makeCell({ value, most, text, x, y, wide, marked, tip }) {
    const share = Math.min(1, Math.abs(value) / most);
    const cell = svg("rect", {
      x, y, width: wide - 1, height: size - 1, rx: size > 12 ? 2 : 0, fill: value < 0 ? "var(--bad)" : "var(--series-0)",
      "fill-opacity": share === 0 ? 0.03 : 0.06 + 0.94 * share, stroke: marked ? "var(--bad)" : "none", "stroke-width": marked ? 2 : 0,
    }, tip ? svg("title", {}, tip) : null);
    if (!text) return cell;
    return [cell, svg("text", {
      x: x + (wide - 1) / 2, y: y + size / 2 + 4, "text-anchor": "middle", "font-size": Math.min(12, wide / 2.6),
      style: { fill: share > 0.55 ? "var(--paper)" : "var(--ink)" },
    }, text(value))];
  }

  const element = el("figure", { class: "figure" }, title && el("h3", {}, title), el("div", { class: "scroll" }, picture),
    el("figcaption", { class: "row" }, caption, saveButtons(() => picture, name)));
  return { element, draw };
}
