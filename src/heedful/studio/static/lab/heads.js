// The heads of a real model: search for the one that does a job, and see what the output loses without it.

import { debounce, el, fill, models } from "../base.js";
import { makeHeat } from "./heat.js";
import { choice, makeBars, say, verdict } from "./parts.js";

export const defaults = { text: "The cat sat on the mat because it was tired.", model: "minilm", layer: 1, head: 1, job: "the one before", shade: "job" };

const JOBS = ["the one before", "the next", "itself", "the first", "the last"];
const SHADES = [["job", "the job"], ["change", "the output's change without it"], ["entropy", "entropy"], ["distance", "distance"]];

export function build({ settings, change }) {
  const says = verdict();
  const map = makeHeat("head map", "", 26);
  const means = makeBars("head means", "Mean weight of this head on");
  const title = el("h3", {});
  const grid = el("div", { class: "scroll" });
  const text = el("textarea", { rows: 2, "aria-label": "Text", oninput: debounce(() => change({ text: text.value }), 500) });
  const model = el("select", { "aria-label": "Model", onchange: () => change({ model: model.value, layer: 1, head: 1 }, { push: true }) });
  const job = choice({ label: "Find the head that looks at", options: JOBS.map((name) => [name, name]), onPick: (value) => change({ job: value }, { silent: true }) });
  const shade = choice({ label: "Shade heads by", options: SHADES, onPick: (value) => change({ shade: value }, { silent: true }) });
  let found = null;
  let shape = "";
  let buttons = [];

  models((one) => one.form === "network" && one.layers).then((offered) => {
    const names = [...new Set(["minilm", ...offered.map((one) => one.name), settings.model])];
    fill(model, names.map((name) => el("option", { value: name }, name)));
    model.value = settings.model;
  }).catch(() => {});

  function draw() {
    if (document.activeElement !== text) text.value = settings.text;
    if ([...model.options].some((option) => option.value === settings.model)) model.value = settings.model;
    job.set(settings.job);
    shade.set(settings.shade);
    if (found) drawFound();
  }

  const value = (i, j) => (settings.shade === "job" ? found.means[i][j][settings.job] : found[settings.shade][i][j]);

  function drawFound() {
    const [layers, heads] = [found.change.length, found.change[0].length];
    if (shape !== `${layers} ${heads}`) makeGrid(layers, heads);
    const values = found.change.map((row, i) => row.map((_, j) => value(i, j)));
    const most = Math.max(...values.flat(), 1e-12);
    const [i, j] = [Math.min(settings.layer, layers) - 1, Math.min(settings.head, heads) - 1];
    buttons.forEach((row, a) => row.forEach((one, b) => {
      one.style.setProperty("--share", `${Math.round((85 * values[a][b]) / most)}%`);
      one.setAttribute("aria-pressed", String(a === i && b === j));
      one.tabIndex = a === i && b === j ? 0 : -1; // Tab leads to the chosen head, the arrow keys to the others
      one.title = `layer ${a + 1}, head ${b + 1}: ${say(values[a][b])}`;
      one.setAttribute("aria-label", one.title);
    }));
    title.textContent = `Layer ${i + 1}, head ${j + 1}`;
    map.draw({
      label: `What layer ${i + 1}, head ${j + 1} attends to`, values: found.weights[i][j], rows: found.tokens, columns: found.tokens,
      tip: (t, s) => `${found.tokens[t]} on ${found.tokens[s]}: ${found.weights[i][j][t][s].toFixed(4)}`,
      caption: "rows: the token that looks; columns: what it looks at",
    });
    const mean = found.means[i][j];
    means.draw(Object.entries(mean).map(([name, share]) => ({ name, value: share, number: share.toFixed(4), kind: name === settings.job ? "chosen" : "" })), { most: 1 });
    const all = found.means.flatMap((row, a) => row.map((one, b) => [one[settings.job], a, b])).sort((x, y) => y[0] - x[0]);
    const best = all[0][1] === i && all[0][2] === j;
    const lost = `Without it the output changes by ${(100 * found.change[i][j]).toFixed(1)} %.`;
    says.set(best, best
      ? `Found: of all ${all.length} heads this one puts the most weight on ${settings.job}, ${mean[settings.job].toFixed(4)} on average. ${lost}`
      : `This head puts ${mean[settings.job].toFixed(4)} on ${settings.job}; another puts ${all[0][0].toFixed(4)}. ${lost}`);
  }

  function makeGrid(layers, heads) {
    shape = `${layers} ${heads}`;
    buttons = Array.from({ length: layers }, (_, i) => Array.from({ length: heads }, (_, j) => el("button", {
      type: "button", class: "head", onclick: () => change({ layer: i + 1, head: j + 1 }, { silent: true }), onkeydown: (event) => {
        const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
        const next = step && buttons[i + step[0]]?.[j + step[1]];
        if (!next) return;
        event.preventDefault();
        next.focus();
        next.click();
      },
    })));
    fill(grid, el("table", { class: "heads", "aria-label": "Heads, a row per layer" },
      el("thead", {}, el("tr", {}, el("th", {}), buttons[0].map((_, j) => el("th", {}, j + 1)))),
      el("tbody", {}, buttons.map((row, i) => el("tr", {}, el("th", {}, `layer ${i + 1}`), row.map((one) => el("td", {}, one)))))));
  }

  function show(answer) {
    found = answer;
    drawFound();
  }

  const element = el("div", {}, says.element, job.element,
    el("div", { class: "ask" }, el("label", {}, "Model ", model), text),
    el("div", { class: "stage" }, el("div", {}, el("h3", {}, "All heads"), shade.element, grid), el("div", {}, title, map.element), el("div", {}, means.element)));
  return { element, draw, show };
}
