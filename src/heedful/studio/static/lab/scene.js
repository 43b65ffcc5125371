// A plane or a space with points that are dragged by mouse or touch, or moved with the arrow keys.

import { el, fill, saveButtons, svg } from "../base.js";
import { rotate, unrotate } from "./math.js";

const SIZE = 480;
const STEP = 0.1;
const FINE = 0.01;

export const color = (i) => `var(--series-${i % 8})`;

/** Make a scene. Options: `name` (of saved figures), `onMove(id, vector)`, `onTurn({turn, tilt})` for scenes in space.
 * `draw` takes `label`, `range`, `turn` and `tilt`, and lists of `points` ({id, name, at, color, shape, size, movable,
 * hollow, ring, strong, below, note}), `segments` ({from, to, color, dash, wide, arrow}), `areas` ({corners, color}), `wedges` ({from, to, color,
 * name}) and `dots` ({at, color}). Points have two components, or three in space. */
export function makeScene({ name, onMove = () => {}, onTurn = () => {} }) {
  const back = svg("g", { "aria-hidden": "true" });
  const front = svg("g", {});
  const picture = svg("svg", { class: "scene", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "group" }, back, front);
  const help = el("p", { class: "muted note" });
  const turns = el("div", { class: "row", hidden: true },
    turner("Turn", "turn", -180, 180), turner("Tilt", "tilt", -90, 90));
  const held = new Map();
  let spec = { points: [], range: 3 };
  let unit = 1;
  let frozen = null;
  let wanted = 3;

  function turner(title, key, min, max) {
    return el("label", {}, `${title} `, el("input", {
      type: "range", min, max, step: 1, "aria-label": `${title} the space`,
      oninput: (event) => onTurn({ turn: spec.turn, tilt: spec.tilt, [key]: Number(event.target.value) }),
    }));
  }

  const inSpace = () => spec.points.some((point) => point.at.length === 3);

  function place(at) {
    const [x, y, near] = at.length === 3 ? rotate(at, spec.turn, spec.tilt) : [...at, 0];
    return [SIZE / 2 + x * unit, SIZE / 2 - y * unit, near];
  }

  function draw(changes) {
    spec = { segments: [], areas: [], wedges: [], dots: [], turn: 30, tilt: 20, ...changes };
    wanted = spec.range;
    if (frozen !== null) spec.range = frozen; // while a point is dragged, the picture stays as it is
    unit = (SIZE / 2 - 26) / spec.range;
    picture.setAttribute("aria-label", spec.label);
    const space = inSpace();
    picture.classList.toggle("space", space);
    turns.hidden = !space;
    [...turns.querySelectorAll("input")].forEach((input, i) => { input.value = i ? spec.tilt : spec.turn; });
    help.textContent = space
      ? "Drag a point; drag beside it to turn the space. Arrow keys and Page Up and Down move a point that has the focus, finely with Shift."
      : "Drag a point, or move it with the arrow keys, finely with Shift.";
    help.hidden = !spec.points.some((point) => point.movable);
    fill(back, axes(space), spec.wedges.map(wedge), spec.areas.map(area), spec.segments.map(segment), spec.dots.map(dot));
    const ids = new Set(spec.points.map((point) => point.id));
    for (const [id, one] of held) if (!ids.has(id)) { one.element.remove(); held.delete(id); }
    for (const point of spec.points) update(point);
  }

  function axes(space) {
    const ends = space ? [[spec.range, 0, 0], [0, spec.range, 0], [0, 0, spec.range]] : [[spec.range, 0], [0, spec.range]];
    const lines = ends.map((end, i) => {
      const [x1, y1] = place(space ? [0, 0, 0] : end.map((c) => -c));
      const [x2, y2] = place(end);
      return [svg("line", { x1, y1, x2, y2, stroke: "var(--muted)", "stroke-width": 1, "stroke-opacity": 0.6 }),
        svg("text", { x: x2 + (i === 0 ? -2 : 6), y: y2 + (i === 0 ? -6 : 4), style: { fill: "var(--muted)" }, "font-size": 12 }, "xyz"[i])];
    });
    const whole = Math.floor(spec.range);
    const grid = space ? [] : Array.from({ length: 2 * whole + 1 }, (_, i) => i - whole).filter(Boolean).flatMap((at) => {
      const [x, y] = place([at, at]);
      return [svg("line", { x1: x, x2: x, y1: 0, y2: SIZE, stroke: "var(--grid)" }),
        svg("line", { x1: 0, x2: SIZE, y1: y, y2: y, stroke: "var(--grid)" })];
    });
    return [...grid, ...lines];
  }

  function wedge({ from, to, color: paint, name: title }) {
    const [outer, inner] = [SIZE / 2 - 2, SIZE / 2 - 20];
    const at = (r, a) => `${SIZE / 2 + r * Math.cos(a)} ${SIZE / 2 - r * Math.sin(a)}`;
    const large = to - from > Math.PI ? 1 : 0;
    if (to - from > 2 * Math.PI - 1e-6) to = from + 2 * Math.PI - 1e-4;
    return svg("path", {
      d: `M ${at(outer, from)} A ${outer} ${outer} 0 ${large} 0 ${at(outer, to)} L ${at(inner, to)} A ${inner} ${inner} 0 ${large} 1 ${at(inner, from)} Z`,
      fill: paint, "fill-opacity": 0.75, stroke: "var(--paper)", "stroke-width": 1,
    }, svg("title", {}, title));
  }

  function area({ corners, color: paint }) {
    return svg("polygon", {
      points: corners.map((corner) => place(corner).slice(0, 2).join(",")).join(" "), fill: paint, "fill-opacity": 0.14,
      stroke: paint, "stroke-opacity": 0.5,
    });
  }

  function segment({ from, to, color: paint, dash, wide = 2, arrow }) {
    const [[x1, y1], [x2, y2]] = [place(from), place(to)];
    const line = svg("line", { x1, y1, x2, y2, stroke: paint, "stroke-width": wide, "stroke-dasharray": dash ? "6 4" : null });
    const long = Math.hypot(x2 - x1, y2 - y1);
    if (!arrow || long < 4) return line;
    const [dx, dy] = [(x2 - x1) / long, (y2 - y1) / long];
    const tip = [[x2, y2], [x2 - 11 * dx + 5 * dy, y2 - 11 * dy - 5 * dx], [x2 - 11 * dx - 5 * dy, y2 - 11 * dy + 5 * dx]];
    return svg("g", {}, line, svg("polygon", { points: tip.map((p) => p.join(",")).join(" "), fill: paint }));
  }

  function dot({ at, color: paint }) {
    const [cx, cy] = place(at);
    return svg("circle", { cx, cy, r: 2.5, fill: paint, "fill-opacity": 0.5 });
  }

  function update(point) {
    const one = held.get(point.id) ?? make(point);
    one.point = point;
    const [x, y, near] = place(point.at);
    const r = (point.size ?? 9) * (1 + (0.15 * near) / spec.range);
    const values = point.at.map((c) => c.toFixed(2)).join(", ");
    const said = `${point.name}: ${values}${point.note ? `; ${point.note}` : ""}`;
    one.element.setAttribute("class", `point${point.movable ? " movable" : ""}`);
    if (point.movable) {
      for (const [key, value] of Object.entries({
        role: "slider", tabindex: 0, "aria-label": point.name, "aria-valuenow": point.at[0].toFixed(2), "aria-valuetext": said,
        "aria-valuemin": -spec.range, "aria-valuemax": spec.range,
      })) one.element.setAttribute(key, value);
    }
    one.title.textContent = said;
    const square = point.shape === "square";
    const mark = square ? { x: x - r, y: y - r, width: 2 * r, height: 2 * r, rx: 2 } : { cx: x, cy: y, r };
    const paint = point.ring ? { fill: "none", stroke: point.color, "stroke-width": 3 } : point.hollow ? { fill: "var(--paper)", stroke: point.color, "stroke-width": 3 } : { fill: point.color, stroke: "var(--paper)", "stroke-width": 1.5 };
    set(one.mark, { ...mark, ...paint });
    set(one.hit, { cx: x, cy: y, r: Math.max(r + 4, 18) });
    const left = x > SIZE - 90;
    set(one.text, {
      x: left ? x - r - 5 : x + r + 5, y: point.below ? y + r + 14 : y - r * 0.6, "text-anchor": left ? "end" : "start", "font-size": 15,
      "font-weight": point.strong ? 700 : 400,
    });
    one.text.textContent = point.name;
  }

  const set = (element, values) => { for (const [key, value] of Object.entries(values)) element.setAttribute(key, value); };

  function make(point) {
    const one = {
      title: svg("title", {}), mark: svg(point.shape === "square" ? "rect" : "circle", {}), text: svg("text", { "aria-hidden": "true" }),
      hit: svg("circle", { fill: "transparent", class: "hit" }), point,
    };
    one.element = svg("g", { onkeydown: (event) => press(event, one) }, one.title, one.hit, one.mark, one.text);
    one.element.addEventListener("pointerdown", (event) => { if (one.point.movable) drag(event, one); });
    front.append(one.element);
    held.set(point.id, one);
    return one;
  }

  function local(event) {
    const matrix = picture.getScreenCTM().inverse();
    return [event.clientX * matrix.a + matrix.e, event.clientY * matrix.d + matrix.f];
  }

  const limit = (at) => at.map((c) => Math.max(-spec.range, Math.min(spec.range, Math.round(c * 100) / 100)));

  function drag(event, one) {
    event.preventDefault();
    event.stopPropagation();
    one.element.focus({ preventScroll: true });
    const [start, from] = [local(event), one.point.at];
    frozen = spec.range;
    const release = () => {
      frozen = null;
      draw({ ...spec, range: wanted });
    };
    follow(event, one.element, release, (now) => {
      const step = [(now[0] - start[0]) / unit, (start[1] - now[1]) / unit];
      const moved = from.length === 3 ? unrotate(step, spec.turn, spec.tilt) : step;
      onMove(one.point.id, limit(from.map((c, i) => c + moved[i])));
    });
  }

  function follow(event, element, release, work) {
    element.setPointerCapture(event.pointerId);
    const move = (next) => work(local(next));
    const end = () => {
      element.removeEventListener("pointermove", move);
      for (const name of ["pointerup", "pointercancel"]) element.removeEventListener(name, end);
      release();
    };
    element.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) element.addEventListener(name, end);
  }

  const KEYS = {
    ArrowRight: [1, 0, 0], ArrowLeft: [-1, 0, 0], ArrowUp: [0, 1, 0], ArrowDown: [0, -1, 0], PageUp: [0, 0, 1], PageDown: [0, 0, -1],
  };

  function press(event, one) {
    const step = KEYS[event.key];
    if (!step || !one.point.movable || (one.point.at.length === 2 && step[2])) return;
    event.preventDefault();
    onMove(one.point.id, limit(one.point.at.map((c, i) => c + step[i] * (event.shiftKey ? FINE : STEP))));
  }

  picture.addEventListener("pointerdown", (event) => {
    if (!inSpace()) return;
    const [start, { turn, tilt }] = [local(event), spec];
    follow(event, picture, () => {}, (now) => onTurn({
      turn: Math.round(((turn + (now[0] - start[0]) / 2 + 540) % 360) - 180),
      tilt: Math.max(-90, Math.min(90, Math.round(tilt + (now[1] - start[1]) / 2))),
    }));
  });

  const element = el("figure", { class: "figure" }, picture, turns,
    el("figcaption", { class: "row" }, help, saveButtons(() => picture, name)));
  return { element, draw };
}
