// Averaging a chosen few: the query that scores them alike, or what prevents it, and what more length does.

import { el, fill } from "../base.js";
import { makeChart } from "./chart.js";
import { hull, times } from "./math.js";
import { button, check, choice, fold, keyNames, makeBars, say, sub, vectorsBox, verdict, weightRows } from "./parts.js";
import { color, makeScene } from "./scene.js";

export const defaults = {
  keys: [[1.9, 0.5], [0.9, 1.7], [-1.7, 0.7], [-0.2, -1.6]],
  values: [[1.6, 0.4], [0.4, 1.6], [-1.6, 0.8], [-0.4, -1.6]],
  chosen: [1, 2],
  length: 1,
  which: "mean",
  eps: 0.01,
  scale: 1,
  turn: 30,
  tilt: 20,
};

const TEXTBOOK = {
  keys: [[0.47, 0.65, 0.6], [0.64, 0.5, -0.59], [-0.03, -0.48, -0.88], [0.43, -0.83, 0.35]],
  values: [[0.9, 0, 0], [0, 0.9, 0], [0, 0, 0.9], [-0.6, -0.6, -0.6]],
  chosen: [1, 2],
  length: 10,
};
const LONGEST = 1e4;

export function build({ settings, change }) {
  const turned = (angles) => change(angles, { silent: true });
  const scene = makeScene({
    name: "average keys", onTurn: turned,
    onMove: (id, at) => change({ keys: settings.keys.map((key, i) => (id === `k${i}` ? at : key)) }),
  });
  const values = makeScene({
    name: "average values", onTurn: turned,
    onMove: (id, at) => change({ values: settings.values.map((value, i) => (id === `v${i}` ? at : value)) }),
  });
  const bars = makeBars("average weights", "Weights of the query on the keys");
  const chart = makeChart("average lengths");
  const says = verdict();
  const chosen = el("div", { class: "row" });
  const which = choice({
    label: "Query", options: [["mean", "S × mean of the chosen keys"], ["exact", "exact query"]], onPick: (value) => change({ which: value }),
  });
  const boxes = Object.fromEntries(["keys", "values"].map((name) => [name, vectorsBox({
    label: name, onPick: (rows) => rows.length === settings.keys.length && rows[0].length === settings.keys[0].length && change({ [name]: rows }),
  })]));
  let found = null;

  function draw() {
    const names = keyNames(settings.keys.length);
    fill(chosen, el("span", { class: "muted" }, "Average"), names.map((name, i) => {
      const box = check({ label: name, onPick: (on) => {
        const now = settings.keys.map((_, n) => n + 1).filter((n) => (n === i + 1 ? on : settings.chosen.includes(n)));
        if (now.length) change({ chosen: now });
        else draw();
      } });
      box.set(settings.chosen.includes(i + 1));
      return box.element;
    }));
    which.set(settings.which);
    for (const [name, box] of Object.entries(boxes)) box.set(settings[name]);
    const fits = found && found.count === settings.keys.length && found.width === settings.keys[0].length ? found : null;
    const query = fits?.queries[settings.which] ?? fits?.queries.mean;
    const zero = settings.keys[0].map(() => 0);
    const flat = zero.length === 2;
    const range = Math.max(...settings.keys.flat().map((c) => Math.abs(c))) * 1.2 + 0.1;
    const picked = settings.keys.filter((_, i) => settings.chosen.includes(i + 1));
    const others = settings.keys.filter((_, i) => !settings.chosen.includes(i + 1));
    const longest = query ? Math.max(...query.query.map((c) => Math.abs(c)), 1e-9) : 1;
    const lines = [];
    if (picked.length === 2) {
      const step = picked[1].map((c, i) => c - picked[0][i]);
      lines.push({ from: picked[0].map((c, i) => c - 4 * step[i]), to: picked[0].map((c, i) => c + 5 * step[i]), color: "var(--muted)", dash: true, wide: 1 });
    }
    if (!flat) lines.push(...others.flatMap((a, i) => others.slice(i + 1).map((b) => ({ from: a, to: b, color: "var(--muted)", wide: 1 }))));
    if (fits?.direction) lines.push({ from: zero, to: times(range * 0.9, fits.direction), color: "var(--good)", dash: true });
    if (query) lines.push({ from: zero, to: times(Math.min(1, (range * 0.9) / longest), query.query), color: "var(--ink)", arrow: true, wide: 3 });
    scene.draw({
      label: "Keys and the query", range, turn: settings.turn, tilt: settings.tilt, segments: lines,
      areas: flat && others.length > 1 ? [{ corners: hull(others), color: "var(--muted)" }] : [],
      points: [
        ...settings.keys.map((at, i) => ({
          id: `k${i}`, name: names[i], at, color: color(i), movable: true, strong: settings.chosen.includes(i + 1), size: query ? 6 + 10 * query.weights[i] : 8,
        })),
        ...(fits?.obstacle ? [{ id: "x", name: "in the way", at: fits.obstacle.point, color: "var(--bad)", hollow: true, size: 7 }] : []),
      ],
    });
    const reach = Math.max(...settings.values.flat().map((c) => Math.abs(c))) * 1.2 + 0.1;
    values.draw({
      label: "Values, their average and the output", range: reach, turn: settings.turn, tilt: settings.tilt,
      segments: query ? settings.values.map((at, i) => ({ from: query.output, to: at, color: color(i), wide: 0.5 + 5 * query.weights[i] })) : [],
      points: [
        ...settings.values.map((at, i) => ({ id: `v${i}`, name: `v${sub(i + 1)}`, at, color: color(i), movable: true, size: 8, strong: settings.chosen.includes(i + 1) })),
        ...(fits ? [{ id: "t", name: "", at: fits.target, color: "var(--good)", ring: true, size: 13 }] : []),
        ...(query ? [{ id: "c", name: "output", at: query.output, color: "var(--ink)", hollow: true, size: 7, below: true }] : []),
      ],
    });
    if (query) bars.draw(weightRows(query.weights, names), { most: 1 });
  }

  function show(answer) {
    found = { ...answer, count: settings.keys.length, width: settings.keys[0].length };
    draw();
    const names = settings.chosen.map((n) => `k${sub(n)}`).join(" and ");
    const exact = settings.which === "exact";
    const query = answer.queries[settings.which];
    if (!answer.direction) {
      says.set(false, `No query averages ${names} alone, because a point lies both among the other keys and on the line (or plane) through the chosen ones: what scores these alike scores some other key at least as high. `,
        exact ? "The mean of the chosen keys is shown." : "");
    } else if (settings.length === 0) {
      says.set(null, `The zero query averages all ${settings.keys.length} values exactly.`);
    } else {
      const wrong = query.wrong;
      const good = wrong <= settings.eps * 1.000001;
      says.set(good, exact
        ? `The exact query scores ${names} alike, ${good ? "and is long enough" : "but is too short yet"}: ${say(wrong)} of the weight is in the wrong place. It needs the length ${say(answer.needed)} for ${say(settings.eps, 2)}, and may then be as long as it likes.`
        : `${say(wrong)} of the weight is in the wrong place. The mean scores ${names} ${say(answer.gap)} × S apart${answer.gap > 1e-9 ? `: it is best at S = ${say(answer.best)}, and in the end one of them wins` : ", so any length will do"}.`);
    }
    chart.draw({
      label: "Weight in the wrong place against the length of the query",
      series: Object.entries(answer.curves).map(([name, points], i) => ({ name, points: points.map(([x, y]) => [x, Math.max(y, 1e-6)]), color: i ? "var(--good)" : "var(--series-1)" })),
      x: { title: "S, length of the query in lengths of the mean", log: true, domain: [0.1, LONGEST] },
      y: { title: "weight in the wrong place", log: true, domain: [1e-6, 1.2] },
      marker: { x: Math.max(settings.length, 0.1), name: `S = ${say(settings.length)}`, onMove: (x) => change({ length: Number(Math.min(LONGEST, x).toPrecision(3)) }) },
    });
  }

  const tools = el("div", { class: "row" }, which.element,
    [0, 1, 10, 100, 1000].map((s) => button(`S = ${s}`, () => change({ length: s }))),
    button("Textbook's keys, in space", () => change(structuredClone(TEXTBOOK), { push: true })),
    button("In the plane", () => change(structuredClone(defaults), { push: true })));
  const element = el("div", {}, says.element, chosen, tools,
    el("div", { class: "stage" }, el("div", {}, el("h3", {}, "Keys and the query"), scene.element),
      el("div", {}, el("h3", {}, "Values, their average and the output"), values.element),
      el("div", {}, el("h3", {}, "Is longer better?"), chart.element, bars.element)),
    fold("Type the vectors", el("div", { class: "typed" }, Object.values(boxes).map((box) => box.element))));
  return { element, draw, show };
}
