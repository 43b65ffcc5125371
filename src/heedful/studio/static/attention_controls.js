// What can be changed: mechanism with its options, masking, temperature.

import { el, fill, state } from "./base.js";

const $ = (id) => document.getElementById(id);
const MASKS = {
  own: "none in the encoder, causal in the decoder",
  none: "none: all see all",
  causal: "causal: none sees later ones",
  zero_after: "unsafe: zeros after the softmax",
  zero_scores: "unsafe: zeros before the softmax",
};
const LEAKS = {
  zero_after: "Later tokens get the weight zero, but they stay in the denominator of the softmax: what comes later still moves the weights of what came before.",
  zero_scores: "The scores of later tokens become 0, which is a weight of e⁰: later tokens flow into earlier ones.",
};

export const readTemperature = () => Number((10 ** Number($("temperature").value)).toPrecision(3));

/** Offer what the model `about` can do, as the state says; `changed()` hears every change. */
export function setUpControls(about, changed) {
  const view = state.get();
  const own = about.mechanisms[0].name;
  fill($("mechanism"), about.mechanisms.map(({ name }) => el("option", { value: name }, name === own ? `${name} (its own)` : name)));
  $("mechanism").value = about.mechanisms.some((one) => one.name === view.mechanism) ? view.mechanism : own;
  fill($("masking"), about.maskings.map((name, i) => el("option", { value: i ? name : "" }, MASKS[name] + (i ? "" : " (its own)"))));
  $("masking").value = about.maskings.slice(1).includes(view.masking) ? view.masking : "";
  const temperature = Number(view.temperature);
  $("temperature").value = temperature > 0 ? Math.log10(temperature) : 0;
  offerOptions(about, changed);
  describe(about);
}

/** The options of the chosen mechanism, each with the value of the address. */
function offerOptions(about, changed) {
  const { options } = find(about);
  const view = state.get();
  const set = (name, value) => { state.set({ [`o.${name}`]: value }); changed(); };
  fill($("options"), options.map(({ name, kind, value, choices }) => {
    const now = view[`o.${name}`] ?? value ?? "";
    const label = name.replace(/^n_/, "").replaceAll("_", " ");
    if (kind === "choice") {
      return el("label", {}, `${label} `, el("select", { onchange: (event) => set(name, event.target.value) },
        choices.map((choice) => el("option", { value: choice, selected: choice === now }, choice))));
    }
    if (kind === "switch") {
      return el("label", {}, el("input", {
        type: "checkbox", checked: String(now) === "true", onchange: (event) => set(name, String(event.target.checked)),
      }), ` ${label}`);
    }
    return el("label", {}, `${label} `, el("input", {
      type: "number", min: 0, step: 1, value: now, class: "short", placeholder: "usual", onchange: (event) => set(name, event.target.value),
    }));
  }));
}

const find = (about) => about.mechanisms.find((one) => one.name === $("mechanism").value) ?? about.mechanisms[0];

/** What the page asks for besides model and text. */
export function readView(about) {
  const { options } = find(about);
  const view = state.get();
  const values = options.map(({ name, value }) => [name, view[`o.${name}`] ?? value]).filter(([, value]) => value !== null && value !== "");
  return {
    mechanism: $("mechanism").value, options: Object.fromEntries(values.map(([name, value]) => [name, String(value)])),
    masking: $("masking").value || "own", temperature: readTemperature(), off: view.off ?? "",
  };
}

/** Whether anything is changed. */
export function isChanged(about) {
  const { mechanism, masking, temperature, off } = readView(about);
  return mechanism !== about.attention || masking !== "own" || temperature !== 1 || off !== ""
    || Object.keys(state.get()).some((key) => key.startsWith("o."));
}

export function describe(about) {
  const masking = $("masking").value;
  const mechanism = find(about);
  const notes = [];
  if (masking in LEAKS) notes.push(LEAKS[masking], "It is softmax, whatever the mechanism.");
  else if (mechanism.untrained) {
    notes.push(`${mechanism.name} has weights of its own, which this model has not learned: they are drawn at random, always the same ones.`);
  } else if (mechanism.name === "argmax") notes.push("All weight is on the key with the highest score, at any temperature.");
  else if (mechanism.name === "performer") notes.push("The weights are estimated from random features; more features estimate better, another seed draws others.");
  else if (mechanism.name === "bigbird") notes.push("A token sees its window, the global blocks and some random ones, each of “block” tokens.");
  if (!about.explicit && mechanism.name === about.attention) {
    notes.push(`${mechanism.name} never makes its weights, so there is no map; choose another mechanism to see one.`);
  }
  $("mechanism").disabled = masking in LEAKS;
  $("options").hidden = masking in LEAKS;
  const temperature = readTemperature();
  $("temperature-value").textContent = String(temperature);
  $("temperature").setAttribute("aria-valuetext", String(temperature));
  $("note").textContent = notes.join(" ");
  $("note").hidden = notes.length === 0;
  $("reset").disabled = !isChanged(about);
}

/** Listen to the controls once. `current()` is what the model can do. */
export function listenToControls(current, changed) {
  const options = () => Object.fromEntries(Object.keys(state.get()).filter((key) => key.startsWith("o.")).map((key) => [key, null]));
  $("mechanism").addEventListener("change", () => {
    const own = $("mechanism").value === current().attention;
    state.set({ ...options(), mechanism: own ? null : $("mechanism").value });
    offerOptions(current(), changed);
    changed();
  });
  $("masking").addEventListener("change", () => { state.set({ masking: $("masking").value }); changed(); });
  $("temperature").addEventListener("input", () => {
    const value = readTemperature();
    state.set({ temperature: value === 1 ? null : value });
    changed();
  });
  $("reset").addEventListener("click", () => {
    state.set({ ...options(), mechanism: null, masking: null, temperature: null, off: null }, { push: true });
    setUpControls(current(), changed);
    changed();
  });
}
