// What a length costs: counted at once, and measured on this machine on request.

import { el, fill } from "../base.js";
import { makeChart } from "./chart.js";
import { button, choice, makeBars, say, slider, verdict } from "./parts.js";

export const defaults = { length: 11, longest: 1024 };

const COLORS = {
  "softmax, explicit weights": "var(--series-1)", softmax: "var(--series-0)", linformer: "var(--series-2)", bigbird: "var(--series-3)",
  performer: "var(--series-4)",
};
const FITTED = 3;

export function build({ settings, change, run }) {
  const says = verdict();
  const counts = makeChart("scaling counts");
  const bars = makeBars("scaling at a length", "Weights, slots or features per head at this length");
  const time = makeChart("scaling time");
  const memory = makeChart("scaling memory");
  const measured = el("div", {});
  const at = makeBars("scaling measured", "At this length, forward and backward");
  const progress = el("div", {});
  const length = slider({ label: "Length n, in tokens", min: 6, max: 17, step: 0.1, format: (v) => whole(v).toLocaleString("en"), onInput: (v) => change({ length: v }) });
  const longest = choice({ label: "Measure up to", options: [1024, 2048, 4096].map((n) => [n, n.toLocaleString("en")]), onPick: (n) => change({ longest: n }, { silent: true }) });
  let shown = null;
  let costs = null;

  const whole = (exponent) => Math.round(2 ** exponent);
  const move = (x) => change({ length: Number(Math.max(6, Math.min(17, Math.log2(x))).toFixed(1)) });

  function draw() {
    length.set(settings.length);
    longest.set(settings.longest);
    if (shown) drawCounts();
    if (costs) drawCosts();
  }

  function drawCounts() {
    const n = whole(settings.length);
    const series = Object.entries(shown.counts).map(([name, points]) => ({ name: name === "softmax" ? "softmax: n²" : name, points, color: COLORS[name], dash: name === "performer" }));
    const marker = { x: n, name: `${n.toLocaleString("en")} tokens`, onMove: move };
    counts.draw({
      label: "Weights, slots or features per head against the length", series, marker,
      x: { title: "length n", log: true }, y: { title: "per head", log: true },
    });
    const rows = Object.entries(shown.counts).map(([name, points]) => ({ name, value: between(points, n) }));
    bars.draw(rows.map((row) => ({ ...row, number: say(row.value) })));
    const bytes = 4 * shown.heads * n * n;
    const factor = rows[0].value / Math.min(...rows.slice(1).map((row) => row.value));
    says.set(null, `${n.toLocaleString("en")} tokens have ${(n * n).toLocaleString("en")} pairs: all weights of ${shown.heads} heads take ${size(bytes)}, and as much again for their gradients. `,
      factor > 1 ? `The smallest of the others works with ${say(factor)} times fewer numbers. ` : "At this length nothing is smaller. ", "Twice the length, four times the pairs.");
  }

  /** A straight line between measured points, on logarithmic axes; beyond them it goes on. */
  function between(points, n) {
    let i = points.findIndex(([x]) => x >= n);
    if (i < 0) i = points.length - 1;
    i = Math.max(1, i);
    const [[x1, y1], [x2, y2]] = [points[i - 1], points[i]];
    return y1 * (n / x1) ** (Math.log(y2 / y1) / Math.log(x2 / x1));
  }

  const size = (bytes) => (bytes < 2 ** 20 ? `${say(bytes / 1024)} KiB` : bytes < 2 ** 30 ? `${say(bytes / 2 ** 20)} MiB` : `${say(bytes / 2 ** 30)} GiB`);

  function drawCosts() {
    const n = whole(settings.length);
    const marker = { x: n, name: `${n.toLocaleString("en")} tokens`, onMove: move };
    const series = (key) => Object.entries(costs).map(([name, curve]) => ({
      name, color: COLORS[name], points: curve.points.filter((point) => point[key] > 0).map((point) => [point.length, point[key]]),
    })).filter((one) => one.points.length);
    time.draw({ label: "Milliseconds against length", series: series("ms"), marker, x: { title: "length", log: true }, y: { title: "ms, forward and backward", log: true } });
    if (series("mb").length) memory.draw({ label: "Megabytes against length", series: series("mb"), marker, x: { title: "length", log: true }, y: { title: "MB", log: true } });
    const last = Math.max(...Object.values(costs).flatMap((curve) => curve.points.map((point) => point.length)));
    const rows = series("ms").filter((one) => one.points.length > 1).map((one) => ({ name: one.name, value: between(one.points.slice(-FITTED - 1), n) }));
    at.draw(rows.map((row) => ({ ...row, number: row.value < 1000 ? `${say(row.value)} ms` : `${say(row.value / 1000)} s`, note: n > last ? "beyond what was measured" : "" })));
  }

  function show(answer) {
    shown = answer;
    drawCounts();
  }

  async function measure() {
    const answer = await run({ longest: settings.longest });
    if (!answer) return;
    costs = answer.measured;
    const limits = Object.entries(costs).filter(([, curve]) => curve.limit).map(([name, curve]) => `${name}: ${curve.limit}`);
    fill(measured, el("div", { class: "stage" }, el("div", {}, time.element), el("div", {}, memory.element), el("div", {}, at.element)),
      el("p", { class: "note muted" }, "Times depend on what else this machine does and prove nothing; only memory decides whether the claim holds.",
        limits.length ? ` Stopped early: ${limits.join("; ")}.` : ""));
    drawCosts();
  }

  const element = el("div", {}, says.element, el("div", { class: "sliders" }, length.element),
    el("div", { class: "stage" }, el("div", {}, el("h3", {}, "Counted"), counts.element), el("div", {}, bars.element)),
    el("h3", {}, "Measured on this machine"),
    el("div", { class: "row" }, longest.element, button("Measure (some seconds to a minute)", measure)), progress, measured);
  return { element, draw, show, progress, params: () => ({ longest: 0 }) };
}
