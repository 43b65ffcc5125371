// Attention: a text before a model, all heads at a glance, one of them large, and what happens when it is changed.

import { api, bytes, debounce, el, fill, linkButton, models, onTheme, progressBar, saveButtons, showError, state } from "./base.js";
import { listEffects, showAnswer, showChange, showEffects } from "./attention_answer.js";
import { describe, isChanged, listenToControls, readView, setUpControls } from "./attention_controls.js";
import { AttentionMap, nameHead, readLook, showWeight } from "./attention_data.js";
import { makeGrid } from "./attention_grid.js";
import { makeLines } from "./attention_lines.js";
import { makeMatrix } from "./attention_matrix.js";
import { drawGrid, drawLines, drawMatrix } from "./attention_save.js";
import { makeText } from "./attention_text.js";

const $ = (id) => document.getElementById(id);
const API = "/api/attention";
const EXAMPLE = "The trophy does not fit into the suitcase because it is too big.";
const VIEWS = { matrix: ["Matrix", makeMatrix], lines: ["Lines", makeLines], text: ["Text", makeText] };
const bar = progressBar("Reading the text");
const rankBar = progressBar("Switching heads off");
const offered = await models((model) => model.form === "network");
let about = null;
let seen = null;
let map = null;
let view = null;
let found = null;

const grid = makeGrid($("grid"), { pick: (layer, head) => choose(layer, head), toggle: (layer, head) => toggle(seen.part, layer, head) });

function setUpForm() {
  fill($("model"), el("option", { value: "" }, "Choose a model"), offered.map((model) => el("option", { value: model.name }, model.name)));
  $("model").addEventListener("change", () => {
    state.set({ model: $("model").value, mechanism: null, masking: null, off: null, part: null, layer: null, head: null, token: null, value: null }, { push: true });
    open();
  });
  const typed = debounce(() => {
    state.set({ text: $("text").value, pair: $("pair").value, token: null });
    change();
  }, 350);
  for (const box of [$("text"), $("pair")]) box.addEventListener("input", typed);
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  $("part").addEventListener("change", () => { state.set({ part: $("part").value, layer: null, head: null, token: null }); change(); });
  const soon = debounce(change, 60);
  listenToControls(() => about, () => { describe(about); soon(); });
  fill($("views"), Object.entries(VIEWS).map(([name, [title]]) => el("button", {
    type: "button", "aria-pressed": "false", dataset: { view: name },
    onclick: () => { state.set({ view: name === "matrix" ? null : name }); showHead(); },
  }, title)));
  $("zoom").addEventListener("input", () => { state.set({ zoom: $("zoom").value }); view.zoom(Number($("zoom").value)); });
  $("off").addEventListener("change", () => toggle(seen.part, seen.layer, seen.head));
  $("all-on").addEventListener("click", () => { state.set({ off: null }, { push: true }); describe(about); change(); });
  $("rank").addEventListener("click", () => { state.set({ rank: state.get().rank ? null : 1 }); rank(); });
  $("effect").addEventListener("change", () => { state.set({ value: $("effect").value }); drawEffects(); });
  fill($("grid-save"), saveButtons(() => drawGrid(grid.cells, title("all heads")), "attention of all heads"));
  fill($("head-save"), saveButtons(() => (currentView() === "lines"
    ? drawLines(map, readToken(), title(nameHead(seen.layer, seen.head))) : drawMatrix(map, title(nameHead(seen.layer, seen.head)))),
  () => `attention ${nameHead(seen.layer, seen.head)}`));
  fill($("progress"), bar.element);
  $("effects").before(rankBar.element);
  state.onChange(restore);
  onTheme(() => { grid.recolor(); view?.recolor(); });
}

const title = (what) => `${$("model").value}: ${what}${$("mechanism").value === about.attention ? "" : `, ${$("mechanism").value}`}`;
const currentView = () => (state.get().view in VIEWS ? state.get().view : "matrix");

function say(...parts) {
  fill($("choose"), ...parts).hidden = parts.length === 0;
}

/** Show what the address says; without a model, one that is there. */
async function restore(address) {
  const usual = offered.find((model) => model.labels.length) ?? offered.find((model) => model.name === "minilm") ?? offered[0];
  if (address.model && !offered.some((model) => model.name === address.model)) {
    showError(`"${address.model}" is not a network in this folder.`);
  }
  $("model").value = address.model ? (offered.some((model) => model.name === address.model) ? address.model : "") : usual?.name ?? "";
  $("text").value = address.text ?? (address.model ? "" : EXAMPLE);
  $("pair").value = address.pair ?? "";
  await open();
}

/** Read what the chosen model can do, and show the text before it. */
async function open() {
  const name = $("model").value;
  [about, seen, found] = [null, null, null];
  $("results").hidden = true;
  $("controls").disabled = true;
  $("about").textContent = "";
  if (!name) {
    say(offered.length ? "Choose a model above." : ["There is no network here yet. Train one: ", el("code", {}, "heedful adapt minilm reviews.csv")]);
    return;
  }
  say("Loading the model…");
  try {
    about = await api(`${API}/describe`, { model: name }, { progress: () => {} });
  } catch (error) {
    if (!error.canceled) say();
    return;
  }
  say();
  $("controls").disabled = false;
  $("about").textContent = introduce(about);
  $("pair-box").hidden = about.kind === "decoder" && !about.labels.length;
  fill($("part"), about.parts.map((part) => el("option", { value: part.name }, part.title)));
  setUpControls(about, change);
  await change();
}

function introduce({ kind, layers, heads, attention, answers, labels, mask }) {
  const what = { encoder: "An encoder", decoder: "A decoder", encoder_decoder: "An encoder-decoder" }[kind];
  const does = answers === "classify" ? (labels.length ? `answers with one of ${labels.length} labels` : "answers with a number")
    : answers === "masked" ? `predicts what is behind ${mask}` : answers ? "predicts the next token" : "gives the text a vector";
  return `${what} of ${layers} layer${layers > 1 ? "s" : ""} with ${heads} head${heads > 1 ? "s" : ""} and ${attention} attention; it ${does}.`;
}

/** What is asked: null while the text is missing. */
function params() {
  if (!about || !$("text").value.trim()) return null;
  const { part, layer, head } = state.get();
  const pair = $("pair-box").hidden ? "" : $("pair").value;
  return {
    model: $("model").value, text: $("text").value, ...(pair.trim() ? { pair } : {}), ...readView(about),
    ...(part ? { part } : {}), layer: layer ?? 1, head: head ?? "1",
  };
}

/** Read the text again, because something has changed. */
async function change() {
  const asked = params();
  $("results").hidden = asked === null && seen === null;
  if (!asked) {
    if (about && !$("text").value.trim()) say("Type or paste a text above.");
    return;
  }
  say();
  let answer;
  // Short work shows no progress, which would only flicker.
  const timer = setTimeout(() => bar.set(-1, "reading the text"), 250);
  const began = performance.now();
  try {
    answer = readLook(await bytes(`${API}/look`, asked, {
      progress: (share, message) => { if (performance.now() - began > 250) bar.set(share, message); },
    }));
  } catch (error) {
    if (!error.canceled) { clearTimeout(timer); bar.set(null); }
    return;
  }
  clearTimeout(timer);
  bar.set(null);
  take(answer);
  grid.show(seen, answer.small, offHeads());
  $("results").hidden = false;
  showAnswer($("answer"), seen.answer, isChanged(about));
  if (seen.truncated) {
    $("answer").append(el("p", { class: "warning note" }, `The text is longer: its last ${seen.truncated.toLocaleString("en")} tokens are not read.`));
  }
  showHead();
  await rank();
}

function take({ header, full }) {
  seen = header;
  map = full && new AttentionMap(header, full);
  fill($("part"), header.parts.map((name) => el("option", { value: name },
    about.parts.find((part) => part.name === name)?.title ?? `${name} text`)));
  $("part").value = header.part;
  $("part-box").hidden = header.parts.length < 2;
}

/** The heads that are off in the part that is shown, as "layer.head". */
function offHeads() {
  const words = (state.get().off ?? "").split(",").filter(Boolean).map((word) => word.split("."));
  return new Set(words.filter((word) => word.length === 2 || word[0] === seen.part).map((word) => word.slice(-2).join(".")));
}

function toggle(part, layer, head) {
  const several = about.parts.length > 1;
  const name = several ? `${part}.${layer}.${head}` : `${layer}.${head}`;
  const off = new Set((state.get().off ?? "").split(",").filter(Boolean));
  if (!off.delete(name)) off.add(name);
  state.set({ off: [...off].join(",") });
  describe(about);
  change();
}

async function choose(layer, head) {
  state.set({ layer, head });
  const asked = params();
  if (!asked) return;
  try {
    take(readLook(await bytes(`${API}/head`, { ...asked, only: "head" }, { progress: () => {} })));
  } catch {
    return; // the error is shown already
  }
  showHead();
}

function readToken() {
  const token = Number(state.get().token);
  return state.get().token && token >= 1 && token <= seen.rows.length ? token - 1 : null;
}

/** Show one head large. */
function showHead() {
  const kind = currentView();
  grid.select(seen.layer, seen.head);
  $("head-title").textContent = nameHead(seen.layer, seen.head).replace(/^./, (letter) => letter.toUpperCase());
  for (const button of $("views").children) button.setAttribute("aria-pressed", String(button.dataset.view === kind));
  $("off-box").hidden = !Number(seen.head);
  $("off").checked = offHeads().has(`${seen.layer}.${seen.head}`);
  $("all-on").hidden = !state.get().off;
  $("zoom-box").hidden = kind !== "matrix";
  $("head-save").hidden = !map;
  if (!map) {
    view?.end();
    view = null;
    fill($("figure"), el("p", { class: "muted" }, seen.head === "rollout"
      ? "There is no roll-out here: rows and columns are different tokens, or there are no weights."
      : "This attention never makes its weights, so there is no map. Choose another mechanism."));
    $("readout").textContent = "";
    return;
  }
  if (view?.kind !== kind) {
    view?.end();
    view = VIEWS[kind][1]({ told: read, pick: (row) => {
      const same = readToken() === row;
      state.set({ token: same ? null : row + 1 });
      view.select(readToken());
      read(null);
    } });
    view.kind = kind;
    fill($("figure"), view.element);
    if (state.get().zoom) view.zoom(Number(state.get().zoom));
  }
  view.show(map, readToken());
  $("zoom").value = view.size;
  read(null);
}

/** Say in words what the pointer is on, or what the chosen token attends to. */
function read(cell) {
  const name = (names, i) => `“${names[i]}” (${i + 1})`;
  const row = cell?.row ?? readToken() ?? (currentView() === "text" ? 0 : null);
  if (row === null) {
    $("readout").textContent = "A row says how much its token attends to each of the others. Point at a weight, or choose a token.";
    return;
  }
  const strongest = map.strongest(row, 5).map(([column, weight]) => `${name(map.columns, column)} ${showWeight(weight)}`);
  const one = cell ? `${name(map.rows, row)} attends to ${name(map.columns, cell.column)} with ${showWeight(map.at(row, cell.column))}. ` : "";
  $("readout").textContent = `${one}${name(map.rows, row)} attends the most to ${strongest.join(", ") || "nothing"}.`;
}

/** Switch the heads off one by one, if that is wanted. */
async function rank() {
  const wanted = Boolean(state.get().rank);
  $("rank").setAttribute("aria-expanded", String(wanted));
  $("rank").textContent = wanted ? "Hide the ranking" : "Switch them off one by one";
  const asked = params();
  if (!wanted || !asked) {
    found = null;
    rankBar.set(null);
    fill($("effects"));
    $("effect-box").hidden = true;
    grid.effects(null);
    return;
  }
  rankBar.set(-1, "switching heads off one by one");
  try {
    found = await api(`${API}/effects`, asked, { progress: (share, message) => rankBar.set(share, message) });
  } catch (error) {
    if (!error.canceled) rankBar.set(null);
    return;
  }
  rankBar.set(null);
  const best = found.values.indexOf(Math.max(...found.values));
  fill($("effect"), found.names.map((name, i) => el("option", { value: name, selected: i === best }, name)));
  if (found.names.includes(state.get().value)) $("effect").value = state.get().value;
  $("effect-box").hidden = found.names.length < 2;
  drawEffects();
}

function drawEffects() {
  if (!found) return;
  const at = Math.max(0, $("effect").selectedIndex);
  const effects = listEffects(found, at);
  const largest = Math.abs(effects[0]?.change ?? 0) || 1;
  grid.effects(new Map(effects.filter((one) => one.part === seen.part || about.parts.length === 1)
    .map((one) => [`${one.layer}.${one.head}`, [Math.abs(one.change) / largest, showChange(found.kind, one.change)]])));
  showEffects($("effects"), found, at, effects, { toggle, parts: about.parts.length });
}

fill($("link"), linkButton());
document.body.append(el("div", { id: "saving", "aria-hidden": "true" }));
setUpForm();
await restore(state.get());
