// One head as a matrix: a row per token that attends, a column per token that is attended to.

import { css, makeScale, paintCells, shade } from "./attention_colors.js";
import { Viewport, fitText } from "./attention_viewport.js";

const LABEL = 12;

/** Return a view with `element`, `show(map, selected)`, `recolor()` and `zoom(size)`.
 * `told({row, column})` hears what the pointer or the keyboard is on, and null; `pick(row)` hears a chosen row. */
export function makeMatrix({ told, pick }) {
  let map, cells, font, margin, size;
  let wanted = null;
  let cursor = null;
  let selected = null;
  let hovered = null;
  const view = new Viewport({
    label: "Attention as a matrix. Arrow keys move over the weights, Enter chooses the row.",
    paint, leave: () => hover(null), point: (x, y) => hover(find(x, y)),
    press: (x, y) => { const cell = find(x, y); if (cell) { cursor = cell; pick(cell.row); } },
    key: (event) => {
      const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      if (event.key === "Enter" && cursor) { pick(cursor.row); return true; }
      if (!(event.key in steps) || !map) return false;
      const [rows, columns] = steps[event.key];
      const from = cursor ?? { row: selected ?? 0, column: -Math.abs(columns) };
      const clamp = (value, most) => Math.min(most - 1, Math.max(0, value));
      cursor = { row: clamp(from.row + rows, map.rows.length), column: clamp(from.column + columns, map.columns.length) };
      view.reveal({ x: margin.x + cursor.column * size, y: margin.y + cursor.row * size, width: size, height: size }, margin);
      hover(cursor);
      return true;
    },
  });
  view.resized = layout;

  function hover(cell) {
    if (cell?.row === hovered?.row && cell?.column === hovered?.column) return;
    hovered = cell;
    told(cell);
    view.draw();
  }

  function layout() {
    if (!map) return;
    const narrow = view.element.clientWidth < 520;
    font = `${LABEL}px ${getComputedStyle(document.body).fontFamily}`;
    const context = view.canvas.getContext("2d");
    context.font = font;
    const widest = (names, most) => Math.min(most, Math.max(30, ...names.slice(0, 600).map((name) => context.measureText(name).width + 14)));
    margin = { x: widest(map.rows, narrow ? 84 : 130), y: widest(map.columns, narrow ? 84 : 130) };
    const fits = Math.floor((view.element.clientWidth - margin.x - 2) / map.columns.length);
    size = wanted ?? Math.min(36, Math.max(map.columns.length > 60 ? 4 : 13, fits));
    view.resize(margin.x + size * map.columns.length + 1, margin.y + size * map.rows.length + 1);
  }

  function find(x, y) {
    if (!map) return null;
    const { seen } = view;
    const row = y < margin.y ? -1 : Math.floor((y + seen.y - margin.y) / size);
    const column = x < margin.x ? -1 : Math.floor((x + seen.x - margin.x) / size);
    if (row < 0 || row >= map.rows.length || column >= map.columns.length) return null;
    return column < 0 ? { row, column: map.strongest(row, 1)[0]?.[0] ?? 0 } : { row, column };
  }

  function paint(context, seen) {
    if (!cells) return;
    const { x: left, y: top } = margin;
    context.save();
    context.beginPath();
    context.rect(left, top, seen.width - left, seen.height - top);
    context.clip();
    context.imageSmoothingEnabled = false;
    context.drawImage(cells, left - seen.x, top - seen.y, size * map.columns.length, size * map.rows.length);
    outline(context, { row: selected, column: null }, seen, "muted", 1);
    outline(context, hovered ?? {}, seen, "series-1", 2);
    context.restore();
    context.strokeStyle = css("grid");
    context.strokeRect(left - 0.5, top - 0.5, Math.min(seen.width - left, size * map.columns.length - seen.x) + 0.5,
      Math.min(seen.height - top, size * map.rows.length - seen.y) + 0.5);
    label(context, seen);
  }

  function outline(context, { row, column }, seen, color, width) {
    if (row === null || row === undefined) return;
    context.strokeStyle = css(color);
    context.lineWidth = width;
    const y = margin.y + row * size - seen.y;
    context.strokeRect(margin.x - seen.x, y, size * map.columns.length, size);
    if (column !== null) context.strokeRect(margin.x + column * size - seen.x, y, size, size);
    context.lineWidth = 1;
  }

  function label(context, seen) {
    const every = Math.ceil((LABEL + 1) / size);
    context.font = font;
    context.textBaseline = "middle";
    const write = (names, from, step, at, draw) => {
      const first = Math.max(0, Math.floor(from / size));
      for (let i = first - (first % every); i < Math.min(names.length, first + step / size + 1); i += every) {
        const on = i === at;
        context.fillStyle = css(on ? "series-1" : "ink");
        draw(names[i], (i + 0.5) * size);
      }
    };
    context.save();
    context.beginPath();
    context.rect(0, margin.y - LABEL / 2, margin.x, seen.height);
    context.clip();
    context.textAlign = "right";
    write(map.rows, seen.y, seen.height, hovered?.row ?? selected, (name, at) =>
      context.fillText(fitText(context, name, margin.x - 10), margin.x - 6, margin.y + at - seen.y));
    context.restore();
    context.save();
    context.beginPath();
    context.rect(margin.x - LABEL / 2, 0, seen.width, margin.y);
    context.clip();
    context.textAlign = "left";
    write(map.columns, seen.x, seen.width, hovered?.column, (name, at) => {
      context.save();
      context.translate(margin.x + at - seen.x, margin.y - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(fitText(context, name, margin.y - 10), 0, 0);
      context.restore();
    });
    context.restore();
  }

  function color() {
    if (map) cells = paintCells(map.rows.length, map.columns.length, makeScale(), (i) => shade(map.weights[i]));
  }

  return {
    element: view.element,
    show(next, row) {
      const other = map?.rows.length !== next.rows.length || map.columns.length !== next.columns.length;
      if (other) cursor = hovered = null;
      map = next;
      selected = row;
      color();
      layout();
      if (other && row !== null) view.element.scrollTop = margin.y + (row + 0.5) * size - view.element.clientHeight / 2;
    },
    select(row) { selected = row; view.draw(); },
    recolor() { color(); view.draw(); },
    zoom(value) { wanted = value; layout(); },
    get size() { return Math.round(size ?? 16); },
    end: () => view.end(),
  };
}
