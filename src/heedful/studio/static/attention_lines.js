// One head as lines from the tokens that attend, on the left, to those that are attended to, on the right.

import { css } from "./attention_colors.js";
import { Viewport, fitText } from "./attention_viewport.js";
import { showWeight } from "./attention_data.js";

export const ROW = 24;
const FONT = 14;
export const FAINTEST = 0.015;
/** The largest number of lines per token, the strongest ones. */
const LINES = 12;

/** The lines of a map: `[row, column, weight]`, of one row or of all. */
export function listLines(map, row = null, most = LINES) {
  const lines = [];
  const rows = row === null ? map.rows.keys() : [row];
  for (const one of rows) {
    for (const [column, weight] of map.strongest(one, row === null ? most : 40)) {
      if (weight >= FAINTEST) lines.push([one, column, weight]);
    }
  }
  return lines;
}

/** Return a view as of `makeMatrix`. */
export function makeLines({ told, pick }) {
  let map, all, width, sides;
  let selected = null;
  let hovered = null;
  const view = new Viewport({
    label: "Attention as lines. The arrow keys move over the tokens, Enter chooses one.",
    paint, leave: () => hover(null), point: (x, y) => hover(find(x, y)),
    press: (x, y) => { const at = find(x, y); if (at && at.row !== null) pick(at.row); },
    key: (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (event.key === "Enter" && hovered?.row !== null && hovered) { pick(hovered.row); return true; }
      if (!step || !map) return false;
      const row = Math.min(map.rows.length - 1, Math.max(0, (hovered?.row ?? selected ?? -step) + step));
      view.reveal({ x: 0, y: row * ROW, width: 1, height: ROW }, { x: 0, y: 0 });
      hover({ row, column: null });
      return true;
    },
  });
  view.resized = layout;

  function hover(at) {
    if (at?.row === hovered?.row && at?.column === hovered?.column) return;
    hovered = at;
    if (at === null || at.row !== null) told(at === null ? null : { row: at.row, column: map.strongest(at.row, 1)[0]?.[0] ?? 0 });
    view.draw();
  }

  function layout() {
    if (!map) return;
    width = Math.min(view.element.clientWidth, 760);
    const side = Math.min(190, width * 0.34);
    sides = { left: side, right: width - side };
    view.resize(width, ROW * Math.max(map.rows.length, map.columns.length) + 4);
  }

  function find(x, y) {
    const i = Math.floor((y + view.seen.y) / ROW);
    if (!map || i < 0) return null;
    if (x <= (sides.left + sides.right) / 2) return i < map.rows.length ? { row: i, column: null } : null;
    return i < map.columns.length ? { row: null, column: i } : null;
  }

  function paint(context, seen) {
    if (!map) return;
    const one = hovered?.row ?? (hovered ? null : selected);
    const into = hovered && hovered.row === null ? hovered.column : null;
    let lines = all;
    if (one !== null && one !== undefined) lines = listLines(map, one);
    else if (into !== null) lines = map.rows.map((_, row) => [row, into, map.at(row, into)]).filter((line) => line[2] >= FAINTEST);
    context.strokeStyle = css("series-0");
    for (const [row, column, weight] of lines) {
      const [from, to] = [(row + 0.5) * ROW - seen.y, (column + 0.5) * ROW - seen.y];
      if (Math.max(from, to) < 0 || Math.min(from, to) > seen.height) continue;
      context.globalAlpha = Math.min(1, lines === all ? 0.08 + 0.92 * weight : 0.2 + 0.8 * Math.sqrt(weight));
      context.lineWidth = 0.75 + 3.5 * weight;
      context.beginPath();
      context.moveTo(sides.left, from);
      context.lineTo(sides.right, to);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.font = `${FONT}px ${getComputedStyle(document.body).fontFamily}`;
    context.textBaseline = "middle";
    const numbers = new Map(lines.filter(() => one !== null && one !== undefined).map(([, column, weight]) => [column, weight]));
    const rowNumbers = new Map(lines.filter(() => into !== null).map(([row, , weight]) => [row, weight]));
    write(context, seen, map.rows, "right", sides.left - 6, one, rowNumbers);
    write(context, seen, map.columns, "left", sides.right + 6, into, numbers);
  }

  function write(context, seen, names, align, x, chosen, weights) {
    const first = Math.max(0, Math.floor(seen.y / ROW));
    context.textAlign = align;
    for (let i = first; i < Math.min(names.length, first + seen.height / ROW + 1); i++) {
      const y = (i + 0.5) * ROW - seen.y;
      const weight = weights.get(i);
      const number = weight === undefined ? "" : showWeight(weight);
      context.fillStyle = css(i === chosen ? "series-1" : "ink");
      const room = sides.left - 10 - (number ? 46 : 0);
      const name = fitText(context, names[i], room);
      context.fillText(name, x, y);
      if (!number) continue;
      context.fillStyle = css("muted");
      const after = context.measureText(name).width + 8;
      context.fillText(number, align === "left" ? x + after : x - after, y);
    }
  }

  return {
    element: view.element,
    show(next, row) {
      const other = map?.rows.length !== next.rows.length;
      if (other) hovered = null;
      map = next;
      selected = row;
      all = listLines(map);
      layout();
      if (other && row !== null) view.element.scrollTop = (row + 0.5) * ROW - view.element.clientHeight / 2;
    },
    select(row) { selected = row; view.draw(); },
    recolor() { view.draw(); },
    zoom() {},
    size: ROW,
    end: () => view.end(),
  };
}
