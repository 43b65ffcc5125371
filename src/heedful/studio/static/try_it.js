// Try it: one text with its answer and reasons, another model beside it, mistakes, and many texts.

import { api, debounce, el, fill, linkButton, models, progressBar, showError, state } from "./base.js";
import { showAnswer } from "./try_it_answer.js";
import { setUpMany } from "./try_it_many.js";
import { setUpMistakes, showNeighbors } from "./try_it_rows.js";
import { showExplanation } from "./try_it_words.js";

const $ = (id) => document.getElementById(id);
const API = "/api/try_it";
const bars = { words: progressBar("Explaining"), near: progressBar("Comparing") };
let about = null;
let asked = 0;

const offered = await models((model) => model.command === "adapt"
  || (model.command === "" && (model.head === "classify" || model.form !== "network" || model.labels.length > 0)));
const many = setUpMany($("many"), () => ({ model: $("model").value, about }));
const mistakes = setUpMistakes({ split: $("split"), kind: $("kind"), box: $("kind-box"), list: $("mistakes") }, take);

function setUpForm() {
  const options = () => offered.map((model) => el("option", { value: model.name }, model.name));
  fill($("model"), el("option", { value: "" }, "Choose a model"), options());
  fill($("other"), el("option", { value: "" }, "no other"), options());
  if (!offered.length) {
    say("There is no model that labels texts here yet. Train one: ", el("code", {}, "heedful adapt minilm reviews.csv"));
  }
  $("model").addEventListener("change", () => chooseModel($("model").value));
  $("other").addEventListener("change", () => { state.set({ other: $("other").value }); askOther(); });
  const typed = debounce(() => { state.set({ right: null, label: null, against: null }); changed(); }, 350);
  for (const box of [$("text"), $("pair")]) box.addEventListener("input", typed);
  $("label").addEventListener("change", () => { state.set({ label: $("label").value, against: null }); explain(); });
  $("against").addEventListener("change", () => { state.set({ against: $("against").value }); explain(); });
  $("method").addEventListener("change", () => { state.set({ method: $("method").value }); explain(); });
  $("near").addEventListener("click", () => {
    state.set({ near: state.get().near ? null : 1 });
    findNeighbors();
  });
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  state.onChange(restore);
}

function say(...parts) {
  fill($("choose"), ...parts).hidden = parts.length === 0;
}

/** Show what the address says. */
async function restore(view) {
  $("text").value = view.text ?? "";
  $("pair").value = view.pair ?? "";
  $("model").value = offered.some((model) => model.name === view.model) ? view.model : "";
  $("other").value = offered.some((model) => model.name === view.other) ? view.other : "";
  if (view.model && !$("model").value) showError(`"${view.model}" is not a model that labels texts in this folder.`);
  await open();
}

async function chooseModel(name) {
  state.set({ model: name, label: null, against: null, method: null, split: null, kind: null, right: null }, { push: true });
  await open();
}

/** Read what the chosen model can do, and ask it. */
async function open() {
  const name = $("model").value;
  about = null;
  for (const id of ["results", "near-section", "wrong-section", "many-section"]) $(id).hidden = true;
  $("about").textContent = "";
  if (!name) {
    if (offered.length) say("Choose a model above. A run, a study or an export below the studio's folder can be asked.");
    return;
  }
  say("Loading the model…");
  try {
    about = await api(`${API}/describe`, { model: name });
  } catch (error) {
    if (!error.canceled) say();
    return;
  }
  say();
  $("about").textContent = describe(about);
  $("pair-box").hidden = about.pairs === false;
  $("text-label").textContent = about.pairs === false ? "Text" : "First text";
  fill($("method"), about.methods.map((method) => el("option", { value: method }, METHODS[method])));
  const view = state.get();
  if (about.methods.includes(view.method)) $("method").value = view.method;
  $("near-section").hidden = false;
  $("many-section").hidden = false;
  $("wrong-section").hidden = about.splits.length === 0;
  many.open();
  mistakes.open(name, about);
  await changed({ keep: true });
}

const METHODS = {
  exact: "exact contributions", gradients: "integrated gradients", occlusion: "leaving words out",
};

function describe({ kind, labels, free, pairs }) {
  const texts = pairs === null ? "texts" : pairs ? "pairs of texts" : "texts";
  if (free) return `Answers ${texts} in free text.`;
  if (kind === "number") return `Gives ${texts} a number.`;
  const what = { labels: "any number of labels", ordered: "one of the ordered labels" }[kind] ?? "one of the labels";
  const shown = labels.slice(0, 8).map((label) => `"${label.slice(0, 30)}"`).join(", ");
  return `Gives ${texts} ${what} ${shown}${labels.length > 8 ? ` and ${labels.length - 8} more` : ""}.`;
}

/** What is asked: null while a text is missing. */
function item() {
  const text = $("text").value;
  const pair = $("pair-box").hidden ? "" : $("pair").value;
  if (!about || !text.trim() || (about.pairs && !pair.trim())) return null;
  return { text, ...(pair.trim() ? { pair } : {}) };
}

/** Ask again, because the text or the model has changed. */
async function changed() {
  state.set({ text: $("text").value, pair: $("pair-box").hidden ? "" : $("pair").value });
  const params = item();
  $("results").hidden = params === null;
  fill($("neighbors"));
  if (!params) return;
  const turn = ++asked;
  let answer;
  try {
    answer = await api(`${API}/answer`, { model: $("model").value, ...params });
  } catch (error) {
    if (!error.canceled) $("results").hidden = true;
    return;
  }
  if (turn !== asked) return;
  showAnswer($("answer"), answer, { right: state.get().right });
  setUpLabels(answer);
  await Promise.all([askOther(), explain(), findNeighbors()]);
}

async function askOther() {
  const params = item();
  const name = $("other").value;
  $("other-section").hidden = !name || !params;
  if ($("other-section").hidden) return;
  $("other-title").textContent = name;
  try {
    showAnswer($("other-answer"), await api(`${API}/answer-other`, { model: name, ...params }, { quiet: true }), {
      right: state.get().right,
    });
  } catch (error) {
    if (!error.canceled) fill($("other-answer"), el("p", { class: "warning" }, error.message));
  }
}

/** Offer the labels to explain: by default the answer, against the most probable other one. */
function setUpLabels(answer) {
  $("words-section").hidden = about.methods.length === 0;
  const labels = about.kind === "number" ? [] : [...answer.bars ?? []].sort((a, b) => b.probability - a.probability);
  const view = state.get();
  const option = (first) => [el("option", { value: "" }, first),
    labels.map((one) => el("option", { value: one.label }, one.label))];
  fill($("label"), option(about.kind === "number" ? "the number" : "the answer"));
  fill($("against"), option("the most probable other label"));
  $("against-box").hidden = about.kind === "labels" || about.kind === "number" || labels.length < 3;
  $("label").value = labels.some((one) => one.label === view.label) ? view.label : "";
  $("against").value = labels.some((one) => one.label === view.against) ? view.against : "";
}

async function explain() {
  const params = item();
  if (!params || !about.methods.length) return;
  const wanted = { method: $("method").value, label: $("label").value, against: $("against").value };
  const box = $("words");
  if (!bars.words.element.isConnected) fill(box, bars.words.element);
  try {
    const found = await api(`${API}/explain`, { model: $("model").value, ...params, ...wanted }, {
      quiet: true, progress: (share, message) => bars.words.set(share, message),
    });
    bars.words.set(null);
    showExplanation(box, found, bars.words.element);
  } catch (error) {
    if (error.canceled) return;
    bars.words.set(null);
    fill(box, bars.words.element, el("p", { class: "warning" }, error.message));
  }
}

async function findNeighbors() {
  const wanted = Boolean(state.get().near);
  $("near").setAttribute("aria-expanded", String(wanted));
  $("near").textContent = wanted ? "Hide them" : "Find them";
  const params = item();
  $("near").disabled = params === null;
  if (!wanted || !params) {
    fill($("neighbors"));
    return;
  }
  fill($("neighbors"), bars.near.element);
  bars.near.set(-1, "comparing");
  try {
    const found = await api(`${API}/neighbors`, { model: $("model").value, ...params }, {
      quiet: true, progress: (share, message) => bars.near.set(share, message),
    });
    showNeighbors($("neighbors"), found);
  } catch (error) {
    if (!error.canceled) fill($("neighbors"), el("p", { class: "warning" }, error.message));
  } finally {
    bars.near.set(null);
  }
}

/** Explain a row from the list of mistakes. */
function take(row) {
  $("text").value = row.text;
  $("pair").value = row.pair ?? "";
  $("pair-box").hidden = row.pair === null && about.pairs === false;
  state.set({ text: row.text, pair: row.pair, right: row.right, label: null, against: null }, { push: true });
  window.scrollTo({ top: 0, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  $("text").focus({ preventScroll: true });
  changed();
}

fill($("link"), linkButton());
setUpForm();
await restore(state.get());
