// A puzzle: which features are wired to queries, keys and values so that the outputs are as wanted.

import { el, fill } from "../base.js";
import { makeHeat } from "./heat.js";
import { button, choice, makeBars, say, slider, verdict } from "./parts.js";
import { makeScene } from "./scene.js";

const none = (rows) => Array.from({ length: rows }, () => [0, 0, 0, 0]);

export const defaults = { q: none(2), k: none(2), v: none(4), beta: 3, scale: 1, plain: true, added: "u_d", amount: 0 };

const FEATURES = ["u_a", "u_b", "u_c", "u_d"];
const TABLES = {
  q: { title: "Q: a token with … looks for", rows: ["p_1", "p_2"] },
  k: { title: "K: a token with … is found at", rows: ["p_1", "p_2"] },
  v: { title: "V: a token with … passes on", rows: FEATURES },
};
const SIGNS = { 0: "·", 1: "+", "-1": "−" };
const TOKENS = ["x_1", "x_2", "x_3"];

export function build({ settings, change }) {
  const says = verdict();
  const scene = makeScene({ name: "queries and keys" });
  const weights = makeHeat("kqv weights", "Who attends to whom", 64);
  const outputs = makeHeat("kqv outputs", "Outputs, in terms of u_a, u_b, u_c, u_d", 64);
  const away = makeBars("kqv distances", "Distance from what is wanted, in lengths");
  const wires = el("div", { class: "wires" });
  const beta = slider({ label: "β, length of u and of q and k", min: 0.25, max: 6, step: 0.05, onInput: (value) => change({ beta: value }) });
  const scale = slider({ label: "Scale of the scores", min: 0.05, max: 4, step: 0.05, onInput: (value) => change({ scale: value }) });
  const amount = slider({ label: "t, added to x_2", min: -3, max: 3, step: 0.1, onInput: (value) => change({ amount: value }) });
  const added = choice({ label: "Add t times", options: [["u_d", "u_d"], ["u_c", "u_c"]], onPick: (value) => change({ added: value }) });
  const plain = choice({
    label: "Attention with", options: [["1", "q = k = v = x"], ["0", "matrices Q, K and V"]], onPick: (value) => change({ plain: value === "1" }, { push: true }),
  });
  let answerOf = null;

  function press(name, row, column) {
    const next = settings[name].map((values, i) => values.map((value, j) => {
      if (i !== row || j !== column) return value;
      return name === "v" ? { 0: 1, 1: -1, "-1": 0 }[value] : 1 - value;
    }));
    change({ [name]: next, plain: false });
  }

  /** The switches are made once, so that the one in use keeps the focus. */
  const switches = Object.fromEntries(Object.entries(TABLES).map(([name, { title, rows }]) => {
    const buttons = rows.map((row, i) => FEATURES.map((feature, j) => el("button", { type: "button", onclick: () => press(name, i, j) }, "·")));
    const table = el("table", { class: "switches", "aria-label": title }, el("caption", {}, title),
      el("thead", {}, el("tr", {}, el("th", {}), FEATURES.map((feature) => el("th", {}, feature)))),
      el("tbody", {}, rows.map((row, i) => el("tr", {}, el("th", {}, row), buttons[i].map((one) => el("td", {}, one))))));
    return [name, { table, buttons }];
  }));
  fill(wires, Object.values(switches).map((one) => one.table));

  function draw() {
    for (const [name, { buttons }] of Object.entries(switches)) {
      buttons.forEach((row, i) => row.forEach((one, j) => {
        const value = settings[name][i]?.[j] ?? 0;
        one.textContent = SIGNS[value] ?? String(value);
        one.setAttribute("aria-pressed", String(value !== 0));
        one.setAttribute("aria-label", `${name.toUpperCase()}: ${FEATURES[j]} to ${TABLES[name].rows[i]}: ${value === 0 ? "off" : value < 0 ? "on, with the other sign" : "on"}`);
      }));
    }
    wires.classList.toggle("off", settings.plain);
    beta.set(settings.beta);
    scale.set(settings.scale);
    amount.set(settings.amount);
    added.set(settings.added);
    plain.set(settings.plain ? 1 : 0);
  }

  function show(answer) {
    answerOf = answer.answer;
    const [first, second] = answer.residuals;
    const loops = answer.weights[1][1];
    if (answer.solved) says.set(true, `Solved: c_1 = u_b − u_c up to ${say(first)} of its length, and c_2 = u_b up to ${say(second)}. A larger β makes it better.`);
    else if (settings.plain) says.set(false, `c_2 is ${say(second)} lengths from u_b: x_2 keeps ${(100 * loops).toFixed(1)} % of its attention for itself, whatever is added to it. Wire Q, K and V below.`);
    else says.set(false, `Not yet: c_1 is ${say(first)} lengths from u_b − u_c, and c_2 is ${say(second)} lengths from u_b. ${hint(answer, first, second)}`);
    weights.draw({
      label: "Weights of the three tokens on each other", values: answer.weights, rows: TOKENS.map((t) => `${t} looks`), columns: TOKENS,
      text: (value) => value.toFixed(3), tip: (i, j) => `${TOKENS[i]} on ${TOKENS[j]}: ${answer.weights[i][j].toFixed(6)}, score ${say(answer.scores[i][j])}`,
    });
    outputs.draw({
      label: "The three outputs in terms of the features", values: answer.outputs, rows: ["c_1", "c_2", "c_3"], columns: FEATURES, most: 1,
      text: (value) => (Math.abs(value) < 5e-4 ? "0" : value.toFixed(3)), caption: "wanted: c_1 = u_b − u_c, c_2 = u_b; red is below zero; c_3 may be anything",
    });
    away.draw([["c_1", first], ["c_2", second]].map(([name, value]) => ({ name, value: Math.min(value, 2), number: say(value) })), { most: 2 });
    const { queries, keys } = answer.addresses;
    plane.hidden = !queries;
    if (!queries) return;
    const range = Math.max(1, ...[...queries, ...keys].flat().map(Math.abs)) * 1.25;
    scene.draw({
      label: "Queries and keys in the plane of p_1 and p_2", range,
      segments: queries.map((at, i) => ({ from: [0, 0], to: at, color: `var(--series-${i})`, arrow: true, wide: 3 - 0.5 * i })),
      points: keys.map((at, i) => ({ id: `k${i}`, name: `k_${i + 1}`, at: at.map((c) => c + 0.03 * range * (i - 1)), color: `var(--series-${i})`, size: 8 })),
    });
  }

  function hint({ weights: w }, first, second) {
    if (w[1][0] < 0.5) return "x_2 should attend to x_1: what does x_2 have that nobody else has, and what does x_1 have?";
    if (w[0][2] < 0.5) return "x_2 finds x_1. Now x_1 should attend to x_3.";
    if (second > 0.01 || first > 0.01) return settings.beta < 2.5 && w[1][0] < 0.99 ? "Everybody looks where they should, but not firmly: raise β." : "Everybody looks where they should: what must be passed on, and with which sign?";
    return "";
  }

  const plane = el("div", {}, el("h3", {}, "Queries (arrows) and keys (points) along p_1 and p_2"), scene.element);
  const tools = el("div", { class: "row" }, plain.element,
    button("Clear the wires", () => change({ q: none(2), k: none(2), v: none(4), plain: false }, { push: true })),
    button("Show the textbook's wiring", () => answerOf && change({ ...structuredClone(answerOf), plain: false }, { push: true })));
  const element = el("div", {}, says.element, tools,
    el("div", { class: "row" }, added.element, amount.element),
    el("div", { class: "stage" },
      el("div", {}, wires, el("div", { class: "sliders" }, beta.element, scale.element),
        el("p", { class: "note muted" }, "x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b. p_1 and p_2 are two addresses; a switch of V goes through +, − and off.")),
      el("div", {}, weights.element, outputs.element, away.element),
      plane));
  return { element, draw, show, params: (now) => ({ plain: now.plain }) };
}
