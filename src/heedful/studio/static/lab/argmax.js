// Hard attention: what jumps and what slides as the query moves, and what can be learned from that.

import { el, fill } from "../base.js";
import { makeChart } from "./chart.js";
import { hull, mix, norm, times, weigh, winners } from "./math.js";
import { button, fold, keyNames, makeBars, say, slider, tuple, vectorsBox, verdict } from "./parts.js";
import { color, makeScene } from "./scene.js";

export const defaults = {
  keys: [[1.6, 0.8], [-0.4, 1.9], [-1.8, -0.6], [0.8, -1.7]],
  values: [[1.6, 1.2], [-0.8, 1.7], [-1.7, -0.9], [1.2, -1.5]],
  query: [[0.9, 1]],
  scale: 1,
  turn: 30,
  tilt: 20,
};

const TEXTBOOK = {
  keys: [[0, 1, 2], [1, 1, 2], [-1, 1, -2], [0, -1, -2]],
  values: [[3, 2, -4], [3, -2, 4], [3, 2, 0], [3, 2, 4]],
  query: [[-2, 1, 1]],
  scale: 1,
};
const COLORS = { softmax: "var(--series-0)", argmax: "var(--series-1)", "straight-through": "var(--series-2)" };
const REACH = 4;

export function build({ settings, change, run }) {
  const scene = makeScene({ name: "argmax keys", onMove: move, onTurn: (turned) => change(turned, { silent: true }) });
  const values = makeScene({
    name: "argmax output", onTurn: (turned) => change(turned, { silent: true }),
    onMove: (id, at) => change({ values: settings.values.map((value, i) => (id === `v${i}` ? at : value)) }),
  });
  const bars = makeBars("argmax weights", "Weights: softmax, and argmax");
  const gradients = makeBars("argmax gradients", "Largest gradient to q and k");
  const chart = makeChart("argmax stairs");
  const losses = makeChart("argmax losses");
  const says = verdict();
  const learned = el("div", {});
  const progress = el("div", {});
  const scale = slider({
    label: "Scale (1 / temperature)", min: -1, max: 1.69, step: 0.01, format: (value) => say(10 ** value),
    onInput: (value) => change({ scale: Number((10 ** value).toPrecision(3)) }),
  });
  const boxes = Object.fromEntries(["keys", "query", "values"].map((name) => [name, vectorsBox({
    label: name, onPick: (rows) => {
      const right = name === "query" ? rows.length === 1 : rows.length === settings.keys.length;
      if (right && rows[0].length === settings.keys[0].length) change({ [name]: rows });
    },
  })]));

  function move(id, at) {
    if (id === "q") change({ query: [at] });
    else change({ keys: settings.keys.map((key, i) => (id === `k${i}` ? at : key)) });
  }

  function draw() {
    const { keys, query: [query] } = settings;
    const weights = weigh(query, keys, settings.scale);
    const scores = keys.map((key) => settings.scale * key.reduce((sum, c, i) => sum + c * query[i], 0));
    const best = scores.indexOf(Math.max(...scores));
    const names = keyNames(keys.length);
    const flat = keys[0].length === 2;
    const zero = keys[0].map(() => 0);
    const range = Math.max(2.6, ...[...keys, query].flat().map((c) => Math.abs(c) + 0.3));
    scene.draw({
      label: "Keys and the query", range, turn: settings.turn, tilt: settings.tilt,
      points: [
        ...keys.map((at, i) => ({ id: `k${i}`, name: names[i], at, color: color(i), movable: true, size: 6 + 12 * weights[i], strong: i === best, note: `score ${scores[i].toFixed(2)}` })),
        { id: "q", name: "q", at: query, color: "var(--ink)", movable: true, hollow: true, shape: "square", size: 8 },
      ],
      areas: flat ? [{ corners: hull(keys), color: "var(--muted)" }] : [],
      segments: [{ from: zero, to: query, color: "var(--ink)", arrow: true, wide: 3 }],
      wedges: flat ? winners(keys).map(([i, from, to]) => ({ from, to, color: color(i), name: `argmax takes ${names[i]} for a query in this direction` })) : [],
    });
    const soft = mix(weights, settings.values);
    const reach = Math.max(2.2, ...settings.values.flat().map((c) => Math.abs(c) + 0.4));
    values.draw({
      label: "Values and the two outputs", range: reach, turn: settings.turn, tilt: settings.tilt,
      areas: flat ? [{ corners: hull(settings.values), color: "var(--series-0)" }] : [],
      points: [
        ...settings.values.map((at, i) => ({ id: `v${i}`, name: `v${names[i].slice(1)}`, at, color: color(i), movable: true, size: 8, strong: i === best })),
        { id: "soft", name: "softmax", at: soft, color: COLORS.softmax, hollow: true, size: 7, below: true },
        { id: "hard", name: "", at: settings.values[best], color: COLORS.argmax, ring: true, size: 14 },
      ],
    });
    bars.draw(names.flatMap((name, i) => [
      { name, value: weights[i], number: weights[i].toFixed(4) },
      ...(i === best ? [{ name: "argmax", value: 1, number: "1", kind: "rest" }] : []),
    ]), { most: 1 });
    scale.set(Math.log10(settings.scale));
    for (const [name, box] of Object.entries(boxes)) box.set(settings[name]);
  }

  function show(answer) {
    const names = keyNames(settings.keys.length);
    const [soft, hard] = [answer.gradients.softmax, answer.gradients.argmax];
    const chosen = names[answer.selected - 1];
    says.set(hard === 0 ? null : false,
      `Argmax takes v${chosen.slice(1)} = ${tuple(answer.output.argmax)}, and its gradient to q and k is exactly ${say(hard)}. `,
      `Softmax returns ${tuple(answer.output.softmax)}, with a gradient of up to ${say(soft)}${soft < 1e-4 ? ": at this scale it has almost become argmax, and learns as little" : ""}.`);
    const most = Math.max(...Object.values(answer.gradients), 1e-9);
    gradients.draw(Object.entries(answer.gradients).map(([name, value]) => ({ name, value, number: say(value) })), { most });
    chart.draw({
      label: "The first component of the output against the first component of the query",
      series: Object.entries(answer.path).map(([name, points]) => ({ name, points, color: COLORS[name] })),
      x: { title: "first component of the query", domain: [-REACH, REACH] }, y: { title: "first component of the output" },
      marker: {
        x: settings.query[0][0], name: `query ${tuple(settings.query[0])}`,
        onMove: (x) => change({ query: [[Number(Math.max(-REACH, Math.min(REACH, x)).toFixed(2)), ...settings.query[0].slice(1)]] }),
      },
    });
  }

  async function train() {
    const answer = await run({ steps: 250 });
    if (!answer) return;
    fill(learned, losses.element, el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ["attention", "loss", "accuracy", "entries of q and k that changed"].map((name) => el("th", {}, name)))),
      el("tbody", {}, Object.entries(answer.learned).map(([name, one]) => el("tr", {},
        el("td", {}, name), el("td", { class: "number" }, say(one.loss)), el("td", { class: "number" }, `${(100 * one.accuracy).toFixed(1)} %`),
        el("td", { class: "number" }, `${one.changed} of ${one.entries}`)))))));
    losses.draw({
      label: "Losses of the three models while they learn to look values up",
      series: Object.entries(answer.losses).map(([name, points]) => ({ name, points, color: COLORS[name] ?? "var(--muted)", dash: !COLORS[name] })),
      x: { title: "training step" }, y: { title: "loss", domain: [0, 2.6] },
    });
  }

  const tools = el("div", { class: "row" },
    button("Put the query between two keys", () => {
      const [a, b] = settings.keys;
      const between = a.length === 2 ? [a[1] - b[1], b[0] - a[0]] : null;
      if (!between) return;
      const long = norm(between) || 1;
      const side = between[0] * (a[0] + b[0]) + between[1] * (a[1] + b[1]) < 0 ? -1.4 : 1.4;
      change({ query: [times(side / long, between).map((c) => Number(c.toFixed(2)))] });
    }),
    button("Textbook's vectors, in space", () => change(structuredClone(TEXTBOOK), { push: true })),
    button("In the plane", () => change(structuredClone(defaults), { push: true })));
  const element = el("div", {}, says.element, tools, el("div", { class: "sliders" }, scale.element),
    el("div", { class: "stage" },
      el("div", {}, el("h3", {}, "Keys and the query"), scene.element),
      el("div", {}, el("h3", {}, "Values and the two outputs"), values.element),
      el("div", {}, el("h3", {}, "Stairs and a slope"), chart.element, gradients.element, bars.element)),
    el("h3", {}, "Can it learn where to look?"),
    el("p", {}, "Each text pairs 16 keys with values and asks for one of them. Three models that start alike see the same texts."),
    el("div", { class: "row" }, button("Train the three models", train)), progress, learned,
    fold("Type the vectors", el("div", { class: "typed" }, Object.values(boxes).map((box) => box.element))));
  return { element, draw, show, progress };
}
