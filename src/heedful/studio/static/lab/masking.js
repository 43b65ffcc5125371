// Four ways to hide the future: one token becomes another, and earlier outputs move or stay.

import { el, fill } from "../base.js";
import { makeHeat } from "./heat.js";
import { button, choice, makeBars, say, slider, verdict } from "./parts.js";

export const defaults = { position: 5, size: 6, scale: 1, seed: 0 };

const WHAT = {
  "minus infinity before": "scores of −∞ before the softmax",
  "zero after": "weights of zero after the softmax",
  "zero after, renormalized": "weights of zero after it, rows divided by their sums",
  "zero scores before": "scores of zero before the softmax",
};
const LEAKS = 1e-9;

export function build({ settings, change, run }) {
  const says = verdict();
  const panels = el("div", { class: "stage four" });
  const heats = Object.keys(WHAT).map((name) => ({ name, heat: makeHeat(`masking ${name}`, "", 30), line: el("p", { class: "note" }) }));
  const tokens = el("div", {});
  const learned = el("div", {});
  const progress = el("div", {});
  const bars = makeBars("masking losses", "Loss on random tokens, as in training and in use");
  const size = slider({ label: "Positions", min: 3, max: 12, step: 1, format: String, onInput: (value) => change({ size: value, position: Math.min(settings.position, value) }) });
  const scale = slider({ label: "Scale of the scores", min: 0.1, max: 10, step: 0.1, onInput: (value) => change({ scale: value }) });
  fill(panels, heats.map(({ name, heat, line }) => el("div", { class: "card", dataset: { mask: name } }, el("h3", {}, WHAT[name]), line, heat.element)));

  function draw() {
    const names = Array.from({ length: settings.size }, (_, i) => [i + 1, `x${i + 1}`]);
    if (tokens.dataset.size !== String(settings.size)) {
      tokens.dataset.size = settings.size;
      tokens.picker = choice({ label: "This token becomes another:", options: names, onPick: (position) => change({ position }) });
      tokens.picker.element.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const position = Math.max(1, Math.min(settings.size, settings.position + step));
        change({ position });
        tokens.querySelectorAll("button")[position - 1].focus();
      });
      fill(tokens, tokens.picker.element);
    }
    tokens.picker.set(settings.position);
    size.set(settings.size);
    scale.set(settings.scale);
  }

  function show(answer) {
    const at = settings.position - 1;
    const names = answer.masks[0].sums.map((_, i) => `x${i + 1}`);
    const leaking = [];
    answer.masks.forEach((mask, n) => {
      const past = mask.changes.slice(0, at).map((row) => row[at]);
      const most = Math.max(0, ...past);
      const seen = most > LEAKS;
      if (seen) leaking.push(WHAT[mask.name]);
      const { heat, line } = heats[n];
      line.className = `note verdict ${seen ? "warning" : "good"}`;
      line.dataset.leak = mask.leak;
      line.textContent = seen ? `✗ earlier outputs move by up to ${say(most)}` : "✓ no earlier output moves";
      heat.draw({
        label: `Weights with ${WHAT[mask.name]}`, values: mask.weights, rows: names, columns: names, picked: at,
        tip: (i, j) => `${names[i]} on ${names[j]}: ${mask.weights[i][j].toFixed(4)}; the row sums to ${mask.sums[i].toFixed(4)}`,
        extra: {
          title: "moves by", values: mask.changes.map((row) => row[at]), most: Math.max(...mask.changes.flat(), 1e-12),
          text: (value) => (value <= LEAKS ? "0" : value.toFixed(3)), marks: mask.changes.map((row, i) => i < at && row[at] > LEAKS),
        },
        caption: `weights; smallest sum of a row ${say(Math.min(...mask.sums))}`,
      });
    });
    if (at === 0) says.set(null, "Nothing is before the first token. Choose a later one.");
    else {
      says.set(leaking.length === 0, leaking.length
        ? `When x${at + 1} becomes another token, outputs before it change with ${leaking.join(" and with ")}: they have seen the future.`
        : `When x${at + 1} becomes another token, no output before it changes.`);
    }
  }

  async function train() {
    const answer = await run({ steps: 250 });
    if (!answer) return;
    fill(learned, bars.element, el("p", {}, `No honest model has a loss below ln 4 = ${answer.honest.toFixed(4)}. In use the future does not exist yet.`));
    bars.draw(answer.masks.flatMap((mask) => [
      { name: `${mask.name}: training`, value: mask.guess.whole, number: say(mask.guess.whole), mark: answer.honest },
      { name: "in use", value: mask.guess.in_use, number: say(mask.guess.in_use), mark: answer.honest, kind: "rest" },
    ]));
  }

  const tools = el("div", { class: "row" }, tokens, button("Other vectors", () => change({ seed: settings.seed + 1 })));
  const element = el("div", {}, says.element, tools, el("div", { class: "sliders" }, size.element, scale.element), panels,
    el("h3", {}, "What a leak does to training"),
    el("p", {}, "Four small models, one per mask, learn to predict the next of random tokens, which nobody can."),
    el("div", { class: "row" }, button("Train the four models", train)), progress, learned);
  return { element, draw, show, progress };
}
