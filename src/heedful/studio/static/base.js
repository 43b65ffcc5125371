// What all pages share: requests, elements, the state in the URL, charts, and saving figures.

const SVG = "http://www.w3.org/2000/svg";
const CLIENT = Math.random().toString(36).slice(2) + Date.now().toString(36);

// ---------------------------------------------------------------- elements

/** Make an element. `attributes`: `class`, `onclick` (any `on...` function), `style` (an object), `dataset`,
 * properties such as `value`, `checked` and `hidden`, and any attribute; null and false leave one out.
 * Children are elements, arrays, or text, which is never read as HTML. */
export function el(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Make an SVG element, in the same way. */
export function svg(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

const PROPERTIES = new Set(["value", "checked", "selected", "disabled", "hidden", "open", "indeterminate"]);

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, one] of Object.entries(value)) element.style.setProperty(key, one);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (PROPERTIES.has(name) && name in element) element[name] = value;
    else if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace all children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// ---------------------------------------------------------------- errors

/** Show an error above the page; an empty one removes it. */
export function showError(error) {
  const line = document.getElementById("error");
  const message = typeof error === "string" ? error : (error?.message ?? "");
  line.hidden = !message;
  fill(line, message, message && el("button", {
    type: "button", class: "quiet", "aria-label": "Close the message", onclick: () => showError(""),
  }, "×"));
}

/** An error that the server has sent; `canceled` says that a newer request has replaced this one. */
export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
    this.canceled = status === 409;
  }
}

// ---------------------------------------------------------------- requests

async function ask(path, params, { signal, accept = "application/json", body, type } = {}) {
  const options = { headers: { Accept: accept, "X-Heedful-Client": CLIENT }, signal };
  if (body !== undefined) {
    Object.assign(options, { method: "POST", body });
    options.headers["Content-Type"] = type ?? "application/octet-stream";
  } else if (params !== undefined) {
    Object.assign(options, { method: "POST", body: JSON.stringify(params) });
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "The studio does not answer; is heedful ui still running?");
  }
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    throw new ServerError(response.status, answer?.error?.message ?? `The studio answered ${response.status}.`);
  }
  return response;
}

/** Run a request, show its error, and throw it again; a replaced request is silent. `quiet` shows nothing. */
async function show(request, quiet) {
  try {
    const result = await request();
    if (!quiet) showError("");
    return result;
  } catch (error) {
    if (!quiet && !error.canceled && error.name !== "AbortError") showError(error);
    throw error;
  }
}

/** Get JSON: with `params` by POST, without them by GET.
 * Options: `progress(share, message)` while it is computed, `signal`, `quiet` (errors are only thrown), and `body`,
 * a file that is sent as it is in place of `params`. */
export function api(path, params, options = {}) {
  return show(async () => {
    if (options.progress) return (await streamed(path, params, options)).result;
    return (await ask(path, params, options)).json();
  }, options.quiet);
}

/** Get bytes, as an ArrayBuffer; options as of `api`. */
export function bytes(path, params, options = {}) {
  return show(async () => {
    if (options.progress) return (await streamed(path, params, options)).bytes;
    return (await ask(path, params, options)).arrayBuffer();
  }, options.quiet);
}

/** Send a file as it is, and get JSON. */
export function upload(path, file, options = {}) {
  return show(async () => (await ask(path, undefined, { ...options, body: file })).json(), options.quiet);
}

async function streamed(path, params, options) {
  const response = await ask(path, params ?? {}, { ...options, accept: "application/x-ndjson" });
  const reader = response.body.getReader();
  let held = new Uint8Array();
  for (;;) {
    const { done, value } = await reader.read();
    if (value) held = join(held, value);
    let end;
    while ((end = held.indexOf(10)) >= 0) {
      const line = JSON.parse(new TextDecoder().decode(held.subarray(0, end)));
      held = held.slice(end + 1);
      if (line.error) throw new ServerError(line.error.code === "conflict" ? 409 : 422, line.error.message);
      if ("result" in line) return line;
      if ("bytes" in line) return { bytes: (await rest(reader, held, line.bytes)).buffer };
      options.progress(line.progress, line.message);
    }
    if (done) throw new ServerError(0, "The studio stopped answering.");
  }
}

async function rest(reader, held, length) {
  while (held.length < length) {
    const { done, value } = await reader.read();
    if (value) held = join(held, value);
    if (done) break;
  }
  return held.slice(0, length);
}

function join(a, b) {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** The models a page can offer: `await models((model) => model.form === "network")`. */
export async function models(wanted = () => true) {
  return (await api("/api/models")).models.filter(wanted);
}

/** A function that runs `work` a moment after its last call. */
export function debounce(work, milliseconds = 150) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), milliseconds);
  };
}

// ---------------------------------------------------------------- the state in the URL

/** What a page shows, behind the # of its URL, so that a link shows it again. */
export const state = {
  /** The state as an object of texts. */
  get() {
    return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  },
  /** Change some keys; null, "" and undefined remove one. `push` makes a step for the browser's back button. */
  set(changes, { push = false } = {}) {
    const params = new URLSearchParams(location.hash.slice(1));
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") params.delete(name);
      else params.set(name, String(value));
    }
    const hash = params.toString();
    const url = hash ? `#${hash}` : location.pathname;
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
  },
  /** Call `work(state)` when a link or the back button changes it. */
  onChange(work) {
    for (const event of ["hashchange", "popstate"]) window.addEventListener(event, () => work(state.get()));
  },
};

// ---------------------------------------------------------------- charts

let vegaReady;
let chartTheme;

function loadVega() {
  vegaReady ??= new Promise((resolve, reject) => {
    const script = el("script", { src: "/vega.js", onload: () => resolve(window.vegaEmbed) });
    script.addEventListener("error", () => reject(new Error("The charts could not be loaded.")));
    document.head.append(script);
  });
  chartTheme ??= api("/api/chart-theme");
  return Promise.all([vegaReady, chartTheme]);
}

/** Draw a Vega-Lite specification in an element; it follows light and dark without being drawn again.
 * Returns the embedded view (`.view.finalize()` ends it). */
export async function vega(element, specification) {
  const [embed, config] = await loadVega();
  return embed(element, specification, {
    actions: false, ast: true, config, defaultStyle: false, mode: "vega-lite", renderer: "svg",
    tooltip: { disableDefaultStyle: true, theme: "custom" },
  });
}

// ---------------------------------------------------------------- saving

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "opacity",
  "font-family", "font-size", "font-weight", "font-style", "text-anchor", "dominant-baseline", "visibility", "display",
];

/** Download an SVG element of the page as a file of its own. `form` is "svg" or "png" (twice as large). */
export async function save(element, name, form = "svg") {
  const text = writeSvg(element);
  const file = name.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure";
  const blob = new Blob([text], { type: "image/svg+xml" });
  download(form === "svg" ? blob : await drawPng(text, element), `${file}.${form}`);
}

function writeSvg(element) {
  const copy = element.cloneNode(true);
  const originals = [element, ...element.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((one, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value) one.setAttribute(name, value);
    }
    one.removeAttribute("class");
    one.removeAttribute("style");
  });
  const { width, height } = element.getBoundingClientRect();
  copy.setAttribute("xmlns", SVG);
  if (!copy.getAttribute("viewBox")) copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const paper = document.createElementNS(SVG, "rect");
  const [x, y] = copy.getAttribute("viewBox").split(/[\s,]+/);
  const color = getComputedStyle(document.body).backgroundColor;
  for (const [key, value] of Object.entries({ x, y, width: "100%", height: "100%", fill: color })) {
    paper.setAttribute(key, value);
  }
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

async function drawPng(text, element) {
  const { width, height } = element.getBoundingClientRect();
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = el("canvas", { width: Math.ceil(width * 2), height: Math.ceil(height * 2) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

/** Download a blob or a text under a name. */
export function download(content, name) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content]));
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Two buttons that save the SVG element that `find` returns, under the name that `name` is or returns. */
export function saveButtons(find, name) {
  const button = (form) => el("button", {
    type: "button", class: "quiet", "aria-label": `Save this figure as ${form.toUpperCase()}`,
    onclick: () => save(find(), typeof name === "function" ? name() : name, form).catch(showError),
  }, form.toUpperCase());
  return el("span", { class: "save", role: "group", "aria-label": "Save this figure" }, button("svg"), button("png"));
}

/** A button that copies the address of what the page shows now. */
export function linkButton() {
  return el("button", {
    type: "button", class: "quiet",
    onclick: async (event) => {
      const button = event.currentTarget;
      await navigator.clipboard?.writeText(location.href).catch(() => {});
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy link"; }, 1500);
    },
  }, "Copy link");
}

/** A bar of progress: `bar.set(share, message)`, hidden while share is null. */
export function progressBar(label = "Computing") {
  const meter = el("progress", { max: 1, "aria-label": label });
  const line = el("span", { class: "muted" });
  const element = el("div", { class: "progress", hidden: true, role: "status" }, meter, line);
  return {
    element,
    set(share, message = "") {
      element.hidden = share === null;
      if (share !== null && share >= 0) meter.value = share;
      else meter.removeAttribute("value");
      line.textContent = message;
    },
  };
}

// ---------------------------------------------------------------- numbers and words

/** 0.9134 as "91.3 %". */
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

/** Seconds as "45 s", "3 min" or "2 h 5 min". */
export function duration(seconds) {
  if (seconds < 90) return `${Math.max(0, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// ---------------------------------------------------------------- light and dark

function currentTheme() {
  return document.documentElement.dataset.theme
    ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

/** Call `work("light" or "dark")` when the theme changes: for what is drawn on a canvas. */
export function onTheme(work) {
  document.addEventListener("heedful-theme", () => work(currentTheme()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => work(currentTheme()));
}

const themeSwitch = document.getElementById("theme");
if (themeSwitch) {
  const label = () => { themeSwitch.textContent = currentTheme() === "dark" ? "Light" : "Dark"; };
  themeSwitch.addEventListener("click", () => {
    const theme = currentTheme() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("heedful-theme", theme);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    document.dispatchEvent(new Event("heedful-theme"));
  });
  onTheme(label);
  label();
}

// The state of a page is behind the #, so the link to the content must not replace it.
document.getElementById("skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main").focus();
});
