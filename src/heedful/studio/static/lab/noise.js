// Averaging noisy keys: the window of beta for one head, and why two heads are safer.

import { el } from "../base.js";
import { makeChart } from "./chart.js";
import { norm, times } from "./math.js";
import { button, choice, makeBars, say, slider, verdict } from "./parts.js";
import { makeScene } from "./scene.js";

export const defaults = { alpha: -4, beta: 1.2, size: 10, seed: 0, lengths: false };

const COLORS = { "one head": "var(--series-1)", "two heads": "var(--series-0)", "two heads given q.k_a > 0": "var(--series-2)" };
const NAMES = { "two heads given q.k_a > 0": "two heads, where q·k_a > 0" };
const LEAST = 0.1;
const [SHORT, PER_TEN] = [0.3, 0.3];

export function build({ settings, change }) {
  const scene = makeScene({
    name: "noisy keys",
    onMove: (id, at) => change({ beta: clamp(((at[0] + at[1]) / 2 - SHORT) / PER_TEN - 1) }),
  });
  const window = makeChart("noise window");
  const histogram = makeChart("noise weights");
  const shares = makeBars("noise shares", "Share of samples whose output is near the average");
  const says = verdict();
  const kind = choice({
    label: "Noise", options: [["0", "in every component (α I)"], ["1", "and in the length of k_a (+ ½ μ_a μ_aᵀ)"]],
    onPick: (value) => change({ lengths: value === "1" }),
  });
  const alpha = slider({ label: "α, variance of a component", min: -7, max: -0.5, step: 0.1, format: (v) => say(10 ** v, 2), onInput: (v) => change({ alpha: v }) });
  const beta = slider({ label: "β, length of the query's parts", min: -1, max: 4, step: 0.02, format: (v) => say(10 ** v), onInput: (v) => change({ beta: v }) });
  const size = slider({ label: "n, number of keys", min: 3, max: 24, step: 1, format: String, onInput: (v) => change({ size: v }) });
  const clamp = (value) => Number(Math.max(-1, Math.min(4, value)).toFixed(2));
  let found = null;

  /** The length of the drawn query is a logarithm. */
  const shown = () => SHORT + PER_TEN * (settings.beta + 1);

  function draw() {
    kind.set(settings.lengths ? 1 : 0);
    alpha.set(settings.alpha);
    beta.set(settings.beta);
    size.set(settings.size);
    if (!found) return;
    const arrow = times(shown(), [1, 1]);
    scene.draw({
      label: "Noisy keys in the plane of the two means", range: 2.4,
      segments: [{ from: [0, 0], to: arrow, color: "var(--ink)", arrow: true, wide: 3 },
        { from: [-2.4, 2.4], to: [2.4, -2.4], color: "var(--muted)", dash: true, wide: 1 }],
      dots: ["k_a", "k_b", "others"].flatMap((name, i) => found.cloud[name].map((at) => ({ at, color: ["var(--series-0)", "var(--series-1)", "var(--muted)"][i] }))),
      points: [
        { id: "a", name: "μ_a", at: [1, 0], color: "var(--series-0)", ring: true, size: 8 },
        { id: "b", name: "μ_b", at: [0, 1], color: "var(--series-1)", ring: true, size: 8 },
        { id: "q", name: "q", at: arrow, color: "var(--ink)", hollow: true, shape: "square", size: 8, movable: true, note: `beta ${say(10 ** settings.beta)}` },
      ],
    });
  }

  function show(answer) {
    found = answer;
    draw();
    const [low, high] = answer.window;
    const b = answer.beta;
    const one = answer.shares["one head"];
    const two = answer.shares["two heads"];
    const near = `Near the average (at most ${say(answer.near)} of the weight in the wrong place): one head in ${(100 * one).toFixed(1)} % of the samples, two heads in ${(100 * two).toFixed(1)} %. `;
    if (settings.lengths) {
      says.set(one > 0.9, near, `q·k_a falls below zero in ${(100 * answer.missed).toFixed(1)} % of the samples: then the head for k_a finds nothing.`);
    } else {
      const where = b < 2 * low ? `β is not much larger than ln n = ${say(low)}, so the other keys are heard` : b > high / 2
        ? `β is not much smaller than 1 / (2√α) = ${say(high)}, so noise decides between the two` : `β is within the window from ln n = ${say(low)} to 1 / (2√α) = ${say(high)}`;
      says.set(answer.error <= answer.near, near, `${where}: on average ${say(answer.error)} of one head's weight is in the wrong place.`);
    }
    window.draw({
      label: "Weight of one head in the wrong place against beta",
      series: [{ name: "one head, by quadrature", points: answer.curve.map(([x, y]) => [x, Math.max(y, 1e-5)]), color: COLORS["one head"] },
        { name: "simulated", points: [[b, Math.max(answer.error, 1e-5)]], color: COLORS["one head"], rings: true }],
      x: { title: "β (noise in every component)", log: true, domain: [LEAST, answer.curve.at(-1)[0]] }, y: { title: "weight in the wrong place", domain: [0, 1] },
      rules: [{ x: low, name: "ln n" }, { x: high, name: "1 / (2√α)" }],
      marker: { x: b, name: `beta ${say(b)}`, onMove: (x) => change({ beta: clamp(Math.log10(x)) }) },
    });
    histogram.draw({
      label: "How the weight on v_a is distributed",
      series: Object.entries(answer.histograms).map(([name, points]) => ({ name: NAMES[name] ?? name, points, color: COLORS[name] })),
      x: { title: "weight on v_a (the average has 0.5)", domain: [0, 1] }, y: { title: "share of the samples", domain: [0, 1] },
    });
    shares.draw(Object.entries(answer.shares).map(([name, value]) => ({ name: NAMES[name] ?? name, value: value ?? 0, number: `${(100 * (value ?? 0)).toFixed(1)} %` })), { most: 1 });
  }

  const tools = el("div", { class: "row" }, kind.element,
    button("Draw again", () => change({ seed: settings.seed + 1 })),
    button("The middle of the window", () => found && change({ beta: clamp(Math.log10(Math.sqrt(found.window[0] * found.window[1]))) })));
  const element = el("div", {}, says.element, tools,
    el("div", { class: "stage" },
      el("div", {}, el("h3", {}, "Keys that were drawn"), scene.element, el("div", { class: "sliders" }, beta.element, alpha.element, size.element)),
      el("div", {}, el("h3", {}, "The window of one head"), window.element, shares.element),
      el("div", {}, el("h3", {}, "What the weight on v_a is"), histogram.element)));
  return { element, draw, show };
}
