// Copying one value: which direction of the query prefers a key, and how long it must be.

import { el, fill } from "../base.js";
import { makeChart } from "./chart.js";
import { hull, mix, norm, times, weigh, winners } from "./math.js";
import { button, choice, fold, keyNames, makeBars, say, slider, tuple, vectorsBox, verdict, weightRows } from "./parts.js";
import { color, makeScene } from "./scene.js";

export const defaults = {
  keys: [[2, 0.4], [0.6, 1.8], [-1.8, 0.8], [-0.4, -1.6], [0.3, 0.2]],
  values: [[1.5, 1.5], [-0.5, 1.8], [-1.8, 0.2], [-0.6, -1.6], [1.4, -1.2]],
  query: [[1, 0.6]],
  key: 1,
  eps: 0.01,
  scale: 1,
  turn: 30,
  tilt: 20,
};

const TEXTBOOK = {
  keys: [[0, 1, 2], [1, 1, 2], [-1, 1, -2], [0, -1, -2]],
  values: [[3, 2, -4], [3, -2, 4], [3, 2, 0], [3, 2, 4]].map((v) => times(0.5, v)),
  query: [[-2, 1, 1]],
  key: 1,
};
const NAMES = { own: "its own direction", found: "direction found by the linear program", query: "your query's direction" };

export function build({ settings, change }) {
  const scene = makeScene({ name: "copy keys", onMove: moveKeys, onTurn: (turned) => change(turned, { silent: true }) });
  const values = makeScene({ name: "copy values", onMove: moveValues, onTurn: (turned) => change(turned, { silent: true }) });
  const bars = makeBars("copy weights", "Weights of the query on the keys");
  const chart = makeChart("copy lengths");
  const says = verdict();
  const who = el("div", {});
  const scale = slider({ label: "Scale of the scores", min: 0.1, max: 5, step: 0.05, onInput: (value) => change({ scale: value }) });
  const eps = slider({
    label: "May stay elsewhere", min: -4, max: -0.5, step: 0.05, format: (value) => say(10 ** value, 2),
    onInput: (value) => change({ eps: Number((10 ** value).toPrecision(2)) }),
  });
  const boxes = {
    keys: vectorsBox({ label: "Keys", onPick: (rows) => reshape(rows) }),
    values: vectorsBox({ label: "Values", onPick: (rows) => rows.length === settings.keys.length && change({ values: rows }) }),
    query: vectorsBox({ label: "Query", onPick: (rows) => rows.length === 1 && rows[0].length === settings.keys[0].length && change({ query: rows }) }),
  };
  let found = null;

  function moveKeys(id, at) {
    if (id === "q") change({ query: [at] });
    else change({ keys: settings.keys.map((key, i) => (id === `k${i}` ? at : key)) });
  }

  function moveValues(id, at) {
    change({ values: settings.values.map((value, i) => (id === `v${i}` ? at : value)) });
  }

  /** Take other keys; what does not fit them any more is made anew. */
  function reshape(keys) {
    const width = keys[0].length;
    if (width < 2 || width > 3) return;
    const fits = settings.keys[0].length === width;
    change({
      keys,
      values: keys.map((key, i) => (fits && settings.values[i]) || key),
      query: fits ? settings.query : [keys[0]],
      key: Math.min(settings.key, keys.length),
    }, { push: true });
  }

  const along = (direction) => {
    const long = norm(direction) || 1;
    change({ query: [direction.map((c) => Number(((c / long) * (norm(settings.query[0]) || 1)).toFixed(3)))] });
  };

  const tools = el("div", { class: "row" },
    button("Ask with the key itself", () => along(settings.keys[settings.key - 1])),
    button("Ask with the direction found", () => found?.exists && along(found.direction)),
    button("Make it as long as needed", () => {
      if (found?.factor) change({ query: [times(found.factor * 1.001, settings.query[0]).map((c) => Number(c.toFixed(3)))] });
    }),
    button("Put the key amid the others", () => {
      const others = settings.keys.filter((_, i) => i !== settings.key - 1);
      const middle = others[0].map((_, c) => Number((others.reduce((sum, key) => sum + key[c], 0) / others.length).toFixed(2)));
      change({ keys: settings.keys.map((key, i) => (i === settings.key - 1 ? middle : key)) });
    }),
    button("Textbook's keys, in space", () => change(structuredClone(TEXTBOOK), { push: true })),
    button("In the plane", () => change(structuredClone(defaults), { push: true })));

  function draw() {
    const { keys, query: [query], key } = settings;
    const weights = weigh(query, keys, settings.scale);
    const range = Math.max(2.6, ...[...keys, query].flat().map((c) => Math.abs(c) + 0.3));
    const names = keyNames(keys.length);
    const flat = keys[0].length === 2;
    const others = keys.filter((_, i) => i !== key - 1);
    const zero = keys[0].map(() => 0);
    scene.draw({
      label: "Keys and the query", range, turn: settings.turn, tilt: settings.tilt,
      points: [
        ...keys.map((at, i) => ({
          id: `k${i}`, name: names[i], at, color: color(i), movable: true, size: 6 + 12 * weights[i], strong: i === key - 1,
          note: `weight ${weights[i].toFixed(3)}`,
        })),
        { id: "q", name: "q", at: query, color: "var(--ink)", movable: true, hollow: true, shape: "square", size: 8, note: `length ${norm(query).toFixed(2)}` },
      ],
      areas: flat && others.length > 2 ? [{ corners: hull(others), color: "var(--muted)" }] : [],
      segments: [
        ...(flat ? [] : others.flatMap((a, i) => others.slice(i + 1).map((b) => ({ from: a, to: b, color: "var(--muted)", wide: 1, dash: true })))),
        ...(found?.exists && found.direction.length === zero.length
          ? [{ from: zero, to: times(range * 0.85, found.direction), color: color(key - 1), dash: true }] : []),
        { from: zero, to: query, color: "var(--ink)", arrow: true, wide: 3 },
      ],
      wedges: flat ? winners(keys).map(([i, from, to]) => ({ from, to, color: color(i), name: `a query in this direction prefers ${names[i]}` })) : [],
    });
    const output = mix(weights, settings.values);
    const reach = Math.max(2.2, ...settings.values.flat().map((c) => Math.abs(c) + 0.3));
    values.draw({
      label: "Values and the output", range: reach, turn: settings.turn, tilt: settings.tilt,
      points: [
        ...settings.values.map((at, i) => ({
          id: `v${i}`, name: `v${names[i].slice(1)}`, at, color: color(i), movable: true, size: 7 + 8 * weights[i], strong: i === key - 1,
        })),
        { id: "c", name: "output", at: output, color: "var(--ink)", hollow: true, size: 7, below: true },
      ],
      segments: settings.values.map((at, i) => ({ from: output, to: at, color: color(i), wide: 0.5 + 5 * weights[i] })),
    });
    bars.draw(weightRows(weights, names), { most: 1 });
    fill(who, pick(names));
    scale.set(settings.scale);
    eps.set(Math.log10(settings.eps));
    for (const [name, box] of Object.entries(boxes)) box.set(settings[name]);
  }

  function pick(names) {
    const keys = choice({ label: "Copy", options: names.map((name, i) => [i + 1, name]), onPick: (key) => change({ key }) });
    keys.set(settings.key);
    return keys.element;
  }

  function show(answer) {
    found = answer;
    draw();
    const name = keyNames(settings.keys.length)[settings.key - 1];
    const [long, left] = [norm(settings.query[0]), answer.left];
    const stays = `${say(left)} stays elsewhere; at most ${say(settings.eps, 2)} may`;
    if (!answer.exists) {
      says.set(false, `No query can copy ${name}: it is in the convex hull of the other keys, so some other key always scores at least as high. Drag it out.`);
    } else if (answer.copied) {
      says.set(true, `Copied: your query of length ${say(long)} leaves ${say(left)} to the other keys. The output is within reach of v${name.slice(1)}.`);
    } else if (answer.factor === null) {
      says.set(false, `Not copied, however long: your query does not prefer ${name} to every other key (${stays}). Some direction does: turn the query to ${tuple(answer.direction)}.`);
    } else {
      says.set(false, `Not yet: the direction is right, but the query is too short (${stays}). It must be ${say(answer.factor)} times as long, ${say(answer.factor * long)}.`);
    }
    const series = Object.entries(answer.curves).map(([title, points], i) => ({
      name: title.startsWith("direction (") ? NAMES.query : title.startsWith("direction f") ? NAMES.found : title.replace(/k_(\d+)/, "k$1"),
      points, color: ["var(--series-1)", "var(--series-2)", "var(--ink)"][i % 3], dash: i === 0,
    }));
    chart.draw({
      label: `The weight on ${name} against the length of the query`, series,
      x: { title: "length of the query", log: true }, y: { title: `weight on ${name}`, domain: [0, 1] },
      marker: {
        x: long, name: `length ${say(long)}`,
        onMove: (x) => change({ query: [times(x / (long || 1), long ? settings.query[0] : settings.keys[settings.key - 1]).map((c) => Number(c.toFixed(3)))] }),
      },
    });
  }

  const element = el("div", {}, says.element, el("div", { class: "row" }, who), tools,
    el("div", { class: "stage" }, el("div", {}, el("h3", {}, "Keys and the query"), scene.element), el("div", {}, el("h3", {}, "Values and the output"), values.element),
      el("div", {}, bars.element, el("div", { class: "sliders" }, scale.element, eps.element), el("h3", {}, "How long must the query be?"), chart.element)),
    fold("Type the vectors", el("div", { class: "typed" }, boxes.keys.element, boxes.query.element, boxes.values.element)));
  return { element, draw, show, params: () => ({}) };
}
