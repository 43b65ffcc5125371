// Figures of the page as SVG elements, drawn when they are saved: canvases cannot be saved as SVG themselves.

import { fill, svg } from "./base.js";
import { makeScale, scaleColor, shade } from "./attention_colors.js";
import { listLines, ROW } from "./attention_lines.js";
import { shorten } from "./bars.js";

const CELL = 18;
/** Larger maps are one picture of a point per weight. */
const MOST_CELLS = 4000;
const LONGEST = 18;

/** Keep a figure in the page, unseen, while it is saved. */
function place(figure) {
  const box = document.getElementById("saving");
  fill(box, figure);
  setTimeout(() => fill(box), 0);
  return figure;
}

const frame = (width, height, ...children) => place(svg(
  "svg", { width, height, viewBox: `0 0 ${width} ${height}` }, children));
const text = (x, y, content, more = {}) => svg(
  "text", { x, y, "font-size": 12, "dominant-baseline": "central", ...more }, shorten(content, LONGEST));

export function drawMatrix(map, title) {
  const [rows, columns] = [map.rows.length, map.columns.length];
  const many = rows * columns > MOST_CELLS;
  const size = many ? Math.max(2, Math.min(CELL, Math.floor(1200 / columns))) : CELL;
  const [left, top] = size < 8 ? [10, 30] : [140, 160];
  const scale = makeScale();
  const cells = many ? bitmap(map, scale, left, top, size) : Array.from({ length: rows * columns }, (_, i) => svg("rect", {
    x: left + (i % columns) * size, y: top + Math.floor(i / columns) * size, width: size, height: size,
    fill: scaleColor(scale, shade(map.weights[i])),
  }));
  return frame(left + columns * size + 10, top + rows * size + 10,
    text(10, 14, "", { "font-weight": 600 }), svg("text", { x: 10, y: 14, "font-size": 13, "font-weight": 600, "dominant-baseline": "central" }, title),
    cells,
    size < 8 ? [] : map.rows.map((name, i) => text(left - 6, top + (i + 0.5) * size, name, { "text-anchor": "end" })),
    size < 8 ? [] : map.columns.map((name, i) => text(0, 0, name, {
      transform: `translate(${left + (i + 0.5) * size} ${top - 6}) rotate(-90)`,
    })));
}

function bitmap(map, scale, x, y, size) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [map.columns.length * size, map.rows.length * size];
  const context = canvas.getContext("2d");
  map.weights.forEach((weight, i) => {
    context.fillStyle = scaleColor(scale, shade(weight));
    context.fillRect((i % map.columns.length) * size, Math.floor(i / map.columns.length) * size, size, size);
  });
  return svg("image", { href: canvas.toDataURL(), x, y, width: canvas.width, height: canvas.height });
}

export function drawLines(map, row, title) {
  const [left, right, top] = [170, 470, 34];
  const height = top + ROW * Math.max(map.rows.length, map.columns.length) + 10;
  const at = (i) => top + (i + 0.5) * ROW;
  const probe = svg("g", { class: "one" });
  return frame(640, height,
    svg("text", { x: 10, y: 14, "font-size": 13, "font-weight": 600, "dominant-baseline": "central" }, title), probe,
    listLines(map, row).map(([from, to, weight]) => svg("line", {
      class: "attention-line", x1: left, y1: at(from), x2: right, y2: at(to),
      "stroke-opacity": Math.min(1, 0.08 + 0.92 * weight).toFixed(3), "stroke-width": (0.75 + 3.5 * weight).toFixed(2),
    })),
    map.rows.map((name, i) => text(left - 6, at(i), name, { "text-anchor": "end", "font-size": 14 })),
    map.columns.map((name, i) => text(right + 6, at(i), name, { "font-size": 14 })));
}

export function drawGrid(cells, title) {
  const size = 48;
  const [left, top] = [46, 56];
  const columns = Math.max(...cells.map((cell) => cell.column)) + 1;
  const rows = Math.max(...cells.map((cell) => cell.row)) + 1;
  const names = Array.from({ length: columns }, (_, i) => (i < columns - 2 ? `${i + 1}` : i === columns - 2 ? "mean" : "roll-out"));
  return frame(left + columns * (size + 4) + 10, top + rows * (size + 4) + 10,
    svg("text", { x: 10, y: 14, "font-size": 13, "font-weight": 600, "dominant-baseline": "central" }, title),
    names.map((name, i) => text(left + i * (size + 4) + size / 2, top - 12, name, { "text-anchor": "middle" })),
    Array.from({ length: rows }, (_, i) => text(left - 8, top + i * (size + 4) + size / 2, `${i + 1}`, { "text-anchor": "end" })),
    cells.map(({ canvas, row, column, off }) => svg("image", {
      href: enlarge(canvas, size), x: left + column * (size + 4), y: top + row * (size + 4), width: size, height: size,
      opacity: off ? 0.25 : 1,
    })));
}

function enlarge(canvas, size) {
  const large = document.createElement("canvas");
  large.width = large.height = size * 2;
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return large.toDataURL();
}
