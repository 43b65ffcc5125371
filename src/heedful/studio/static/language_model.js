// Language model: a text token by token, the distribution at each place, and another token in its place.

import { api, debounce, el, fill, linkButton, models, percent, saveButtons, showError, state } from "./base.js";
import { drawBars } from "./bars.js";
import { offerPeople, showGroups, showPerson } from "./language_model_person.js";

const $ = (id) => document.getElementById(id);
const API = "/api/language_model";
const SETTINGS = ["temperature", "top_k", "top_p", "seed"];
const offered = await models((model) => model.form === "network" && ["causal", "text2text"].includes(model.head)
  && !model.labels.length);
/** With progress, a request that a newer one replaces is no error in the console. */
const REPLACEABLE = { progress: () => {} };
let about = null;
let shown = null;
let writing = false;
let turn = 0;

function setUpForm() {
  fill($("model"), el("option", { value: "" }, "Choose a model"), offered.map((model) => el("option", { value: model.name }, model.name)));
  $("model").addEventListener("change", () => {
    state.set({ model: $("model").value, ids: null, at: null }, { push: true });
    open();
  });
  $("text").addEventListener("input", debounce(() => {
    state.set({ text: $("text").value, ids: null, at: null });
    read();
  }, 350));
  for (const name of SETTINGS) {
    $(name).addEventListener("change", () => { state.set({ [name]: $(name).value }); read(); });
  }
  $("count").addEventListener("change", () => state.set({ count: $("count").value }));
  $("ask").addEventListener("submit", (event) => event.preventDefault());
  $("write").addEventListener("click", () => (writing ? stop() : write(Math.max(1, Number($("count").value) || 40))));
  $("next").addEventListener("click", () => write(1));
  $("back").addEventListener("click", () => { stop(); state.set({ ids: ids().slice(0, -1).join(","), at: null }); read(); });
  $("again").addEventListener("click", () => { stop(); state.set({ ids: null, at: null }, { push: true }); read(); });
  fill($("save"), saveButtons(() => $("distribution").querySelector("svg"), "next token"));
  state.onChange(restore);
}

function say(...parts) {
  fill($("choose"), ...parts).hidden = parts.length === 0;
}

const ids = () => (state.get().ids ?? "").split(",").filter(Boolean).map(Number);

async function restore(view) {
  stop();
  const known = offered.some((model) => model.name === view.model);
  if (view.model && !known) showError(`"${view.model}" is not a language model in this folder.`);
  $("model").value = view.model ? (known ? view.model : "") : offered[0]?.name ?? "";
  $("text").value = view.text ?? "";
  for (const name of SETTINGS) $(name).value = view[name] ?? (name === "temperature" ? 1 : "");
  $("count").value = view.count ?? 40;
  await open();
}

async function open() {
  stop();
  const name = $("model").value;
  [about, shown] = [null, null];
  $("results").hidden = true;
  $("groups-section").hidden = true;
  $("controls").disabled = true;
  $("about").textContent = "";
  $("people").hidden = true;
  if (!name) {
    say(offered.length ? "Choose a model above." : ["There is no language model here yet. Make one: ", el("code", {}, "heedful pretrain gpt-nano book.txt")]);
    return;
  }
  say("Loading the model…");
  try {
    about = await api(`${API}/describe`, { model: name }, REPLACEABLE);
  } catch (error) {
    if (!error.canceled) say();
    return;
  }
  say();
  $("controls").disabled = false;
  $("text-label").textContent = about.asks ? "Question" : about.whole ? "Input" : "Prompt";
  $("write").textContent = about.asks ? "Answer" : "Write";
  $("about").textContent = introduce(about);
  $("text").placeholder = about.asks ? "Where was NAME born?" : about.fills ? "She was born in ___ in 1815." : "Type the beginning of a text";
  if (!$("text").value && !state.get().text) $("text").value = about.groups[0]?.questions[0] ?? "";
  if (about.asks && !state.get().temperature) $("temperature").value = 0;
  offerPeople($("people"), about.groups, (question) => {
    $("text").value = question;
    state.set({ text: question, ids: null, at: null }, { push: true });
    write(Number($("count").value) || 40);
  });
  $("groups-section").hidden = about.groups.length === 0;
  showGroups($("groups"), about.groups);
  await read();
}

function introduce({ asks, fills, whole, room, vocabulary, tokenizer }) {
  const does = asks ? "It answers questions" : whole ? "It reads the input and writes an output" : "It continues a text";
  const gap = fills ? `, and fills a gap, written ___${whole ? "" : ", as in its training"}` : "";
  return `${does}${gap}. It reads ${room.toLocaleString("en")} tokens of a vocabulary of ${vocabulary.toLocaleString("en")} (${tokenizer}).`;
}

function params(more = {}) {
  const settings = Object.fromEntries(SETTINGS.map((name) => [name, $(name).value]).filter(([, value]) => value !== ""));
  return {
    model: $("model").value, text: $("text").value, ids: ids(),
    ...Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, Number(value)])), ...more,
  };
}

/** Ask what stands at the chosen place, or comes next; `more` may choose a token. */
async function read(more) {
  if (!about || (!$("text").value && about.asks)) {
    $("results").hidden = true;
    return null;
  }
  const now = ++turn;
  const { at } = state.get();
  let answer;
  try {
    answer = await api(`${API}/read`, params(more ?? (at ? { at: Number(at) - 1 } : {})), REPLACEABLE);
  } catch (error) {
    if (!error.canceled) stop();
    return null;
  }
  if (now !== turn) return null;
  shown = answer;
  state.set({ ids: answer.tokens.map((token) => token.id).join(","), text: $("text").value });
  draw();
  return answer;
}

/** Write tokens until the model ends, `count` is reached or somebody stops it. */
async function write(count) {
  if (!about || writing) return;
  writing = true;
  $("write").textContent = "Stop";
  state.set({ at: null });
  for (let i = 0; i < count && writing; i++) {
    const answer = await read({ choose: true });
    if (!answer || answer.ended || answer.full) break;
  }
  stop();
}

function stop() {
  if (!writing) return;
  writing = false;
  $("write").textContent = about?.asks ? "Answer" : "Write";
  if (shown) draw();
}

/** Put another token at the place that is shown, and go on from there. */
function take(token) {
  stop();
  state.set({ ids: [...ids().slice(0, shown.at), token].join(","), at: null }, { push: true });
  read();
}

function draw() {
  const { tokens, at, ended, full } = shown;
  $("results").hidden = false;
  drawTokens();
  const place = at < tokens.length ? tokens[at] : null;
  const last = place && ended && at === tokens.length - 1;
  $("place-title").textContent = last ? "Instead of the end" : place ? `Instead of “${place.piece}”` : "What comes next";
  const row = place && shown.top.find((one) => one.id === place.id);
  $("place").textContent = [
    place ? `Token ${at + 1} had a probability of ${percent(place.probability)} and was number ${row.rank} in order.` : "",
    `${shown.entropy.toFixed(1)} bits of doubt.`,
    greedy() ? "At temperature 0 the most probable token is taken." : "",
    changed() ? `${shown.possible === 1 ? "1 token" : `${shown.possible.toLocaleString("en")} tokens`} can be drawn; a bar is the probability of drawing, the dashed line the model's own.` : "",
    "Choose one to put it there and go on.",
  ].join(" ");
  drawBars($("distribution"), [...shown.top.map((one) => ({
    name: one.piece, value: changed() ? one.drawn : one.probability, number: percent(changed() ? one.drawn : one.probability),
    mark: changed() ? one.probability : null, note: changed() ? `${percent(one.probability)} by the model itself` : "",
    kind: place && one.id === place.id ? "chosen" : changed() && one.drawn === 0 ? "rest" : "", pick: () => take(one.id),
  })), ...(shown.rest.count > 0 ? [{
    name: `${shown.rest.count.toLocaleString("en")} others`, value: shown.rest.probability, number: percent(shown.rest.probability), kind: "rest",
  }] : [])], { label: "Probabilities of the tokens at this place", most: 1 });
  const many = `${tokens.length} token${tokens.length === 1 ? "" : "s"}`;
  const probability = tokens.length ? `, together with a probability of ${shown.probability.toPrecision(3)}` : "";
  $("state").textContent = writing ? "" : `${many} written${probability}. ${ended ? "The model has ended the text." : full
    ? "There is no room for more." : ""}${shown.unknown.length ? ` Not in the vocabulary: ${shown.unknown.slice(0, 8).join(" ")}.` : ""}`;
  for (const id of ["next", "write"]) $(id).disabled = !writing && (ended || full);
  $("back").disabled = $("again").disabled = tokens.length === 0;
  if (!writing) tellPerson();
}

const greedy = () => $("temperature").value !== "" && Number($("temperature").value) === 0;
const changed = () => !greedy() && (Number($("temperature").value || 1) !== 1 || $("top_k").value !== "" || ($("top_p").value !== "" && Number($("top_p").value) !== 1));

function drawTokens() {
  const focused = [...$("tokens").querySelectorAll("button")].indexOf(document.activeElement);
  const end = shown.ended ? shown.tokens.length - 1 : -1;
  const text = $("text").value;
  const gap = about.fills && !about.whole ? text.indexOf("___") : -1;
  const before = gap >= 0 ? text.slice(0, gap).trimEnd() : about.whole ? `${text} → ` : about.asks ? `${text} ` : text;
  fill($("tokens"),
    el("span", { class: "given" }, before),
    shown.tokens.map((token, i) => el("button", {
      type: "button", class: `token${i === end ? " end" : ""}`, "aria-pressed": String(i === shown.at && !writing),
      title: percent(token.probability), "aria-label": `${token.piece}, ${percent(token.probability)}`,
      style: { "--doubt": `${Math.round(55 * (1 - token.probability))}%` },
      onclick: () => { stop(); state.set({ at: i + 1 }); read(); },
    }, i === end ? "end" : token.piece.replaceAll("␣", " ").replaceAll("↵", "\n"))),
    gap < 0 ? null : el("span", { class: "given" }, text.slice(gap + 3)));
  if (focused >= 0) $("tokens").querySelectorAll("button")[focused]?.focus();
}

/** Of a model that answers questions about people: say who this is. */
async function tellPerson() {
  if (!about.asks) {
    fill($("person"));
    return;
  }
  const answer = shown;
  let found;
  try {
    found = await api(`${API}/person`, { model: $("model").value, text: $("text").value }, { quiet: true, progress: () => {} });
  } catch (error) {
    if (error.canceled) return;
    found = { error: `Who was in training is not known here: ${error.message}.` };
  }
  if (answer === shown) showPerson($("person"), answer, found);
}

fill($("link"), linkButton());
setUpForm();
await restore(state.get());
