// Random features, a low rank and a pattern of blocks: what each leaves out.

import { el, fill } from "../base.js";
import { makeChart } from "./chart.js";
import { makeHeat } from "./heat.js";
import { button, check, choice, makeBars, say, slider, verdict } from "./parts.js";

export const defaults = {
  part: "performer", kind: "positive, orthogonal", features: 8, longer: 1, draw: 0, rank: 8, window: 3, global: 0, random: 0, causal: false, layer: 1,
};

const KINDS = ["positive, orthogonal", "positive, independent", "trigonometric, orthogonal", "trigonometric, independent"];
const NAMES = { performer: "Performer", linformer: "Linformer", bigbird: "BigBird" };

export function build(lab) {
  const parts = { performer: performer(lab), linformer: linformer(lab), bigbird: bigbird(lab) };
  const says = verdict();
  const stage = el("div", {});
  const pick = choice({ label: "Idea", options: Object.keys(parts).map((name) => [name, NAMES[name]]), onPick: (part) => lab.change({ part }, { push: true }) });
  let open = null;

  function draw(settings) {
    const name = parts[settings.part] ? settings.part : "performer";
    pick.set(name);
    if (open !== name) {
      open = name;
      fill(stage, parts[name].element);
    }
    parts[name].draw(settings);
  }

  function show(answer, settings) {
    if (answer.part === open) parts[open].show(answer, settings, says);
  }

  return { element: el("div", {}, says.element, pick.element, stage), draw, show };
}

function performer({ settings, change }) {
  const exact = makeHeat("softmax weights", "Softmax's weights", 11);
  const near = makeHeat("performer weights", "Performer's weights", 11);
  const chart = makeChart("performer error");
  const kind = choice({ label: "Features", options: KINDS.map((name) => [name, name]), onPick: (value) => change({ kind: value }) });
  const features = slider({ label: "m, number of features", min: 3, max: 12, step: 1, format: (v) => String(2 ** v), onInput: (v) => change({ features: v }) });
  const longer = slider({ label: "Length of q and k", min: 0.25, max: 3, step: 0.05, format: (v) => `× ${v}`, onInput: (v) => change({ longer: v }) });

  function draw(now) {
    kind.set(now.kind);
    features.set(now.features);
    longer.set(now.longer);
  }

  function show(answer, now, says) {
    const most = Math.max(...answer.exact.flat());
    const tip = (matrix) => (i, j) => `query ${i + 1} on key ${j + 1}: ${say(matrix[i][j])}`;
    const caption = `the first ${answer.exact.length} of ${answer.size}`;
    exact.draw({ label: "Softmax's weights", values: answer.exact, most, tip: tip(answer.exact), caption });
    near.draw({ label: "Performer's weights; red ones are negative", values: answer.near, most, tip: tip(answer.near), caption: `${caption}; red: below zero` });
    says.set(answer.negative ? false : null, `With ${answer.features} features the output is ${(100 * answer.error).toFixed(1)} % off softmax's`,
      answer.negative ? `, and ${(100 * answer.negative).toFixed(1)} % of the weights are negative. ` : ", and no weight is negative. ",
      `For ${answer.size} tokens it takes ${say(answer.operations.linear / answer.operations.quadratic)} times the operations of making all weights.`);
    chart.draw({
      label: "Performer's error against the number of features",
      series: [...Object.entries(answer.curves).map(([name, points], i) => ({ name, points, dash: name.startsWith("theory"), color: name.startsWith("theory") ? "var(--muted)" : `var(--series-${i})` })),
        { name: "this draw", points: [[answer.features, answer.error]], color: "var(--ink)", rings: true }],
      x: { title: "features m", log: true, domain: [8, 4096] }, y: { title: "error (lines: length × 1)", log: true, domain: [0.02, Math.max(1, answer.error * 1.1)] },
      marker: { x: answer.features, name: `${answer.features} features`, onMove: (x) => change({ features: Math.max(3, Math.min(12, Math.round(Math.log2(x)))) }) },
    });
  }

  const element = el("div", {}, el("div", { class: "row" }, kind.element, button("Draw other directions", () => change({ draw: settings.draw + 1 }))),
    el("div", { class: "sliders" }, features.element, longer.element),
    el("div", { class: "stage" }, el("div", {}, exact.element), el("div", {}, near.element), el("div", {}, el("h3", {}, "What more features buy"), chart.element)));
  return { element, draw, show };
}

function linformer({ change }) {
  const heats = { exact: makeHeat("softmax weights", "Softmax's weights", 11), near: makeHeat("linformer weights", "Linformer's, with means of neighbors", 11), best: makeHeat("best weights", "The best of this rank", 11) };
  const chart = makeChart("linformer error");
  const rank = slider({ label: "r, slots (the rank)", min: 1, max: 64, step: 1, format: String, onInput: (v) => change({ rank: v }) });

  function show(answer, now, says) {
    const most = Math.max(...answer.exact.flat());
    for (const [name, heat] of Object.entries(heats)) {
      heat.draw({ label: name, values: answer[name], most, tip: (i, j) => `query ${i + 1} on key ${j + 1}: ${say(answer[name][i][j])}`, caption: `the first ${answer.exact.length} of ${answer.size}` });
    }
    says.set(answer.rank === answer.size || null, answer.rank === answer.size
      ? `With as many slots as keys, ${answer.size}, Linformer is softmax itself: its output is ${say(answer.error)} off.`
      : `${answer.size} keys in ${answer.rank} slots: the output is ${(100 * answer.error).toFixed(1)} % off; the best weights of that rank are ${(100 * answer.best_error).toFixed(1)} % off.`);
    chart.draw({
      label: "Error against the rank", series: Object.entries(answer.curves).map(([name, points]) => ({ name, points: points.map(([x, y]) => [x, Math.max(y, 1e-3)]) })),
      x: { title: "rank r", log: true, domain: [1, answer.size] }, y: { title: "error", log: true, domain: [1e-3, 10] },
      marker: { x: answer.rank, name: `rank ${answer.rank}`, onMove: (x) => change({ rank: Math.max(1, Math.min(answer.size, Math.round(x))) }) },
    });
  }

  const element = el("div", {}, el("div", { class: "sliders" }, rank.element),
    el("div", { class: "stage four" }, Object.values(heats).map((heat) => el("div", {}, heat.element)), el("div", {}, el("h3", {}, "What a higher rank buys"), chart.element)));
  return { element, draw: (now) => rank.set(now.rank), show };
}

function bigbird({ change }) {
  const heat = makeHeat("bigbird layers", "Which block (row) has heard of which (column)", 17);
  const bars = makeBars("bigbird pairs", "Pairs of blocks that one layer computes");
  const sliders = {
    window: slider({ label: "Window, in blocks", min: 1, max: 9, step: 2, format: String, onInput: (v) => change({ window: v }) }),
    global: slider({ label: "Global blocks", min: 0, max: 4, step: 1, format: String, onInput: (v) => change({ global: v }) }),
    random: slider({ label: "Random blocks", min: 0, max: 4, step: 1, format: String, onInput: (v) => change({ random: v }) }),
  };
  const layer = slider({ label: "After layer", min: 1, max: 24, step: 1, format: String, onInput: (v) => change({ layer: v }) });
  const causal = check({ label: "causal: no block sees later ones", onPick: (on) => change({ causal: on }) });

  function draw(now) {
    for (const [name, one] of Object.entries(sliders)) one.set(now[name]);
    layer.set(now.layer);
    causal.set(now.causal);
  }

  function show(answer, now, says) {
    const seen = (i, j) => answer.first[i][j] > 0 && answer.first[i][j] <= now.layer;
    heat.draw({
      label: `Which of ${answer.blocks} blocks have heard of which after layer ${now.layer}`,
      values: answer.first.map((row, i) => row.map((first, j) => (answer.may[i][j] ? (seen(i, j) ? Math.max(0.25, 1 - (first - 1) / Math.max(2, answer.deepest)) : 0) : null))),
      tip: (i, j) => (answer.first[i][j] ? `block ${i + 1} hears of block ${j + 1} after ${answer.first[i][j]} layers` : `block ${i + 1} never hears of block ${j + 1}`),
      caption: "dark: in the first layer",
    });
    const heard = answer.first.flat().filter((first, n) => first > 0 && first <= now.layer && answer.may.flat()[n]).length;
    says.set(heard === answer.of, answer.layers
      ? `It takes ${answer.layers} layer${answer.layers === 1 ? "" : "s"} until every block has heard of all it may. After layer ${now.layer}: ${heard} of ${answer.of} pairs.`
      : `However many layers: some blocks never hear of each other. After layer ${now.layer}: ${heard} of ${answer.of} pairs.`);
    bars.draw([{ name: "this pattern", value: answer.pairs, number: String(answer.pairs) }, { name: "all pairs", value: answer.of, number: String(answer.of), kind: "rest" }]);
  }

  const element = el("div", {}, el("div", { class: "stage" }, el("div", {}, heat.element),
    el("div", {}, el("div", { class: "sliders" }, layer.element, Object.values(sliders).map((one) => one.element)), causal.element, bars.element)));
  return { element, draw, show };
}
