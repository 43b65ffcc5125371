// Lab: one topic at a time, what Python says of what was dragged, and the command that says the same.

import { api, el, fill, linkButton, progressBar, showError, state } from "./base.js";
import { parse, write } from "./lab/parts.js";

const $ = (id) => document.getElementById(id);
const TOPICS = [...document.querySelectorAll(".topic")].map((section) => section.dataset.topic);
const bar = progressBar("Computing");
let topic = null;

/** Open the topic that the address names. */
async function open() {
  const view = state.get();
  const name = TOPICS.includes(view.topic) ? view.topic : TOPICS[0];
  if (topic?.name === name) {
    if (!topic.stage) return; // it is being opened
    Object.assign(topic.settings, read(topic.module.defaults, view));
    topic.stage.draw(topic.settings);
    topic.ask();
    return;
  }
  topic?.running?.abort();
  const mine = { name, wanted: false, busy: false };
  topic = mine;
  for (const section of document.querySelectorAll(".topic")) section.hidden = section.dataset.topic !== name;
  for (const link of $("topics").querySelectorAll("a")) {
    if (link.dataset.topic === name) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  $("finding").hidden = true;
  let module;
  try {
    module = await import(`./lab/${name}.js`);
  } catch (error) {
    showError(error);
    return;
  }
  if (topic !== mine) return;
  mine.module = module;
  mine.settings = read(module.defaults, view);
  mine.ask = () => ask(mine);
  const box = document.querySelector(`.topic[data-topic="${name}"] .play`);
  mine.stage = module.build({ settings: mine.settings, change: (changes, options) => change(mine, changes, options), run: (params) => run(mine, params) });
  fill(box, mine.stage.element);
  mine.stage.draw(mine.settings);
  mine.ask();
}

/** The settings that an address holds; others have their defaults. */
function read(defaults, view) {
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => {
    const text = view[name];
    if (text === undefined) return [name, structuredClone(value)];
    if (Array.isArray(value)) {
      const rows = parse(text);
      return [name, rows === null ? structuredClone(value) : Array.isArray(value[0]) ? rows : rows[0]];
    }
    if (typeof value === "number") return [name, Number.isFinite(Number(text)) ? Number(text) : value];
    return [name, typeof value === "boolean" ? text === "1" : text];
  }));
}

function writeSetting(value) {
  if (Array.isArray(value)) return Array.isArray(value[0]) ? write(value) : value.join(",");
  return typeof value === "boolean" ? (value ? "1" : "0") : String(value);
}

/** Change some settings, draw at once what needs no model, and ask Python. */
function change(mine, changes, { push = false, silent = false } = {}) {
  if (topic !== mine) return;
  Object.assign(mine.settings, changes);
  const said = { topic: mine.name };
  for (const [name, value] of Object.entries(mine.settings)) {
    const text = writeSetting(value);
    said[name] = text === writeSetting(mine.module.defaults[name]) ? null : text;
  }
  state.set(said, { push });
  mine.stage.draw(mine.settings);
  if (!silent) mine.ask();
}

/** Ask for what the settings show; while an answer is awaited, only the latest settings wait. */
async function ask(mine) {
  mine.wanted = true;
  document.body.dataset.lab = "waiting"; // for tests, until what is shown is what was asked last
  if (mine.busy) return;
  mine.busy = true;
  while (mine.wanted && topic === mine) {
    mine.wanted = false;
    const params = { topic: mine.name, ...mine.settings, ...mine.stage.params?.(mine.settings) };
    const late = setTimeout(() => { if (topic === mine) bar.set(-1, "computing"); }, 400);
    try {
      show(mine, await api("/api/lab/play", params));
    } catch (error) {
      if (!error.canceled && topic === mine) document.body.dataset.lab = "failed";
    } finally {
      clearTimeout(late);
      bar.set(null);
    }
  }
  mine.busy = false;
}

function show(mine, answer) {
  if (topic !== mine) return;
  fill($("problem"), answer.problem ?? "").hidden = !answer.problem;
  if (!answer.problem) {
    mine.stage.show(answer, mine.settings);
    if (answer.finding) showFinding(answer.finding);
  }
  if (!mine.wanted) document.body.dataset.lab = mine.name;
}

/** Run what takes long, such as a training, until `stop` is pressed. Returns the answer, or null. */
async function run(mine, params) {
  mine.running?.abort();
  const running = new AbortController();
  mine.running = running;
  const meter = progressBar("Running");
  const stop = el("button", { type: "button", onclick: () => running.abort() }, "Stop");
  const line = el("div", { class: "row" }, meter.element, stop);
  mine.stage.progress.replaceChildren(line);
  meter.set(-1, "starting");
  try {
    const answer = await api("/api/lab/run", { topic: mine.name, ...mine.settings, ...params }, {
      signal: running.signal, progress: (share, message) => meter.set(share, message),
    });
    if (topic !== mine) return null;
    if (answer.problem) showError(answer.problem);
    if (answer.finding) showFinding(answer.finding);
    return answer.problem ? null : answer;
  } catch {
    return null; // shown above the page, unless it was stopped
  } finally {
    line.remove();
    if (mine.running === running) mine.running = null;
  }
}

function showFinding(found) {
  $("finding").hidden = false;
  $("claim").textContent = found.claim;
  const line = $("claim-verdict");
  line.className = `verdict ${found.passed ? "good" : "warning"}`;
  line.dataset.passed = String(found.passed);
  line.textContent = `${found.passed ? "✓" : "✗"} ${found.verdict}`;
  fill($("construction"), found.construction.map((text) => el("li", {}, text)));
  fill($("numbers"), found.numbers.map((number) => el("tr", { class: number.holds === false ? "bad" : "" },
    el("td", {}, number.name), el("td", { class: "number" }, number.text), el("td", {}, number.condition),
    el("td", {}, number.holds === null ? "" : number.holds ? "yes" : "NO"))));
  $("command").textContent = found.command;
}

$("copy-command").addEventListener("click", async () => {
  await navigator.clipboard?.writeText($("command").textContent).catch(() => {});
  $("copy-command").textContent = "Copied";
  setTimeout(() => { $("copy-command").textContent = "Copy"; }, 1500);
});
$("topics").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link) return;
  event.preventDefault();
  history.pushState(null, "", `#topic=${link.dataset.topic}`);
  open();
});
fill($("link"), linkButton());
fill($("busy"), bar.element);
state.onChange(open);
await open();
