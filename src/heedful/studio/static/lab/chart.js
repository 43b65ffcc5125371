// Curves over a number that may be dragged: lengths of a query, temperatures, numbers of features.

import { el, fill, saveButtons, svg } from "../base.js";
import { color } from "./scene.js";

const PLOT = 240;
const LETTER = 7.1;

/** Make a chart. `draw` takes `label`, `series` ({name, points, color, dash, rings}), `x` and `y` ({title, log, domain,
 * format}), `rules` ({x, name}) and `marker` ({x, name, onMove}), whose x a click or the arrow keys change. */
export function makeChart(name) {
  const picture = svg("svg", { class: "chart", role: "group" });
  const box = el("div", { class: "chart-box" }, picture);
  let spec = null;
  let scales = null;
  let width = 0;
  let height = 0;

  function draw(next) {
    spec = next;
    width = Math.max(260, Math.min(720, Math.round(box.clientWidth || 480)));
    const focused = picture.contains(document.activeElement);
    const legend = makeLegend();
    height = PLOT + legend.height;
    for (const [key, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": spec.label })) picture.setAttribute(key, value);
    const plot = { left: 52, right: width - 24, top: legend.height + 8, bottom: height - 40 };
    const every = spec.series.flatMap((one) => one.points);
    scales = {
      x: makeScale(spec.x, every.map((p) => p[0]), plot.left, plot.right),
      y: makeScale(spec.y, every.map((p) => p[1]), plot.bottom, plot.top),
    };
    fill(picture, legend.element, axis("x", plot), axis("y", plot),
      (spec.rules ?? []).map((rule, i) => makeRule(rule, plot, i)), spec.series.map(makeCurve), spec.marker ? makeMarker(plot) : null);
    if (focused) picture.querySelector("[role=slider]")?.focus({ preventScroll: true });
  }

  function makeLegend() {
    let [x, y] = [4, 14];
    const parts = spec.series.filter((one) => one.name).map((one, i) => {
      const long = one.name.length * LETTER + 44;
      if (x > 4 && x + long > width) [x, y] = [4, y + 19];
      const part = svg("g", {},
        one.rings ? svg("circle", { cx: x + 11, cy: y - 4, r: 4, fill: "none", stroke: one.color ?? color(i), "stroke-width": 1.5 })
          : svg("line", { x1: x, x2: x + 22, y1: y - 4, y2: y - 4, stroke: one.color ?? color(i), "stroke-width": 3, "stroke-dasharray": one.dash ? "6 4" : null }),
        svg("text", { x: x + 28, y, "font-size": 13 }, one.name));
      x += long;
      return part;
    });
    return { element: svg("g", {}, parts), height: parts.length ? y + 6 : 4 };
  }

  function axis(which, plot) {
    const scale = scales[which];
    const ticks = scale.ticks.map((value) => {
      const at = scale.at(value);
      const text = (spec[which].format ?? short)(value);
      return which === "x" ? [
        svg("line", { x1: at, x2: at, y1: plot.bottom, y2: plot.bottom + 4, stroke: "var(--muted)" }),
        svg("text", { x: at, y: plot.bottom + 17, "text-anchor": "middle", "font-size": 12 }, text),
      ] : [
        svg("line", { x1: plot.left, x2: plot.right, y1: at, y2: at, stroke: "var(--grid)" }),
        svg("text", { x: plot.left - 6, y: at + 4, "text-anchor": "end", "font-size": 12 }, text),
      ];
    });
    const title = which === "x"
      ? svg("text", { x: (plot.left + plot.right) / 2, y: height - 6, "text-anchor": "middle", style: { fill: "var(--muted)" }, "font-size": 12.5 }, spec.x.title)
      : svg("text", { transform: `translate(12 ${(plot.top + plot.bottom) / 2}) rotate(-90)`, "text-anchor": "middle", style: { fill: "var(--muted)" }, "font-size": 12.5 }, spec.y.title);
    return [ticks.flat(), title];
  }

  function makeCurve(one, i) {
    const paint = one.color ?? color(i);
    const [low, high] = [scales.y.low, scales.y.high];
    const inside = one.points.filter(([x, y]) => x !== null && y !== null && x >= scales.x.low * (1 - 1e-9) - 1e-12 && x <= scales.x.high * (1 + 1e-9));
    const at = inside.map(([x, y]) => [scales.x.at(x), scales.y.at(Math.max(low, Math.min(high, y)))]);
    if (one.rings) return at.map(([cx, cy]) => svg("circle", { cx, cy, r: 3.5, fill: "none", stroke: paint, "stroke-width": 1.5 }));
    return svg("path", {
      d: at.map(([x, y], n) => `${n ? "L" : "M"} ${x.toFixed(1)} ${y.toFixed(1)}`).join(" "), fill: "none", stroke: paint, "stroke-width": 2.25,
      "stroke-dasharray": one.dash ? "6 4" : null, "stroke-linejoin": "round",
    });
  }

  function makeRule({ x, name: title }, plot, i) {
    if (!(x >= scales.x.low && x <= scales.x.high)) return null;
    const at = scales.x.at(x);
    const left = at > (plot.left + plot.right) / 2;
    return [svg("line", { x1: at, x2: at, y1: plot.top, y2: plot.bottom, stroke: "var(--muted)", "stroke-dasharray": "4 4" }),
      svg("text", { x: left ? at - 5 : at + 5, y: plot.top + 12 + 14 * i, "text-anchor": left ? "end" : "start", style: { fill: "var(--muted)" }, "font-size": 12 }, title)];
  }

  function makeMarker(plot) {
    const { x, name: title, onMove } = spec.marker;
    const at = scales.x.at(Math.max(scales.x.low, Math.min(scales.x.high, x)));
    return svg("g", {
      class: "marker", role: onMove ? "slider" : "img", tabindex: onMove ? 0 : null, "aria-label": spec.x.title, "aria-valuenow": x,
      "aria-valuemin": scales.x.low, "aria-valuemax": scales.x.high, "aria-valuetext": title,
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
        if (!step || !onMove) return;
        event.preventDefault();
        onMove(scales.x.back(at + (step * (plot.right - plot.left)) / (event.shiftKey ? 500 : 100)));
      },
    }, svg("line", { x1: at, x2: at, y1: plot.top, y2: plot.bottom, stroke: "var(--ink)", "stroke-width": 1.5 }),
    svg("circle", { cx: at, cy: plot.bottom, r: 8, fill: "var(--ink)", stroke: "var(--paper)", "stroke-width": 2 }));
  }

  picture.addEventListener("pointerdown", (event) => {
    if (!spec?.marker?.onMove) return;
    const go = (next) => {
      const x = next.clientX - picture.getBoundingClientRect().left;
      const value = scales.x.back(x * (width / picture.getBoundingClientRect().width));
      spec.marker.onMove(Math.max(scales.x.low, Math.min(scales.x.high, value)));
    };
    picture.setPointerCapture(event.pointerId);
    const end = () => {
      picture.removeEventListener("pointermove", go);
      for (const kind of ["pointerup", "pointercancel"]) picture.removeEventListener(kind, end);
    };
    picture.addEventListener("pointermove", go);
    for (const kind of ["pointerup", "pointercancel"]) picture.addEventListener(kind, end);
    go(event);
    picture.querySelector("[role=slider]")?.focus({ preventScroll: true });
  });

  new ResizeObserver(() => {
    if (spec && Math.abs(Math.min(720, box.clientWidth) - width) > 1) draw(spec);
  }).observe(box);
  return { element: el("figure", { class: "figure" }, box, el("figcaption", {}, saveButtons(() => picture, name))), draw };
}

function makeScale({ log, domain }, values, start, end) {
  const seen = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  let [low, high] = domain ?? [Math.min(...seen), Math.max(...seen)];
  if (!(high > low)) [low, high] = log ? [low / 2, low * 2] : [low - 0.5, low + 0.5];
  const [to, from] = log ? [Math.log10, (v) => 10 ** v] : [(v) => v, (v) => v];
  const [a, b] = [to(low), to(high)];
  const at = (value) => start + ((to(log ? Math.max(value, low) : value) - a) / (b - a)) * (end - start);
  const back = (place) => from(a + ((place - start) / (end - start)) * (b - a));
  return { low, high, at, back, ticks: log ? powers(a, b, low, high) : nice(low, high) };
}

function powers(a, b, low, high) {
  const step = Math.max(1, Math.ceil((b - a) / 6));
  const list = [];
  for (let p = Math.ceil(a - 1e-9); p <= b + 1e-9; p += step) list.push(10 ** p);
  if (list.length > 1) return list;
  return [low, ...[1, 2, 5].flatMap((m) => [m * 10 ** Math.floor(a), m * 10 ** Math.ceil(a)]), high]
    .filter((v, i, all) => v >= low && v <= high && all.indexOf(v) === i).sort((x, y) => x - y);
}

function nice(low, high) {
  const raw = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const list = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step) list.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return list;
}

/** A number as short as a tick needs it. */
export function short(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(0).replace("e+", "e");
  return Number(value.toPrecision(3)).toLocaleString("en");
}
