// Solve: a file of labeled texts, what is in it, and the best model for it.

import { api, debounce, el, fill, linkButton, progressBar, showError, state, upload } from "./base.js";
import { setUpSolution } from "./solve_answer.js";
import { showData } from "./solve_data.js";

const $ = (id) => document.getElementById(id);
const COLUMNS = ["text_column", "pair_column", "label_column", "group", "time", "kind"];
const TIMES = [1, 5, 10, 30, 60];
const MOST = 256 * 1024 * 1024;
const bars = { sending: progressBar("Sending"), reading: progressBar("Reading") };
const solution = setUpSolution({ title: $("solution-title"), now: $("now"), answer: $("answer"), log: $("log") }, list);
let described = null;
let asked = 0;
let files = [];

function setUp() {
  fill($("sending"), bars.sending.element);
  fill($("reading"), bars.reading.element);
  fill($("link"), linkButton());
  $("file").addEventListener("change", () => send($("file").files[0]));
  $("source").addEventListener("change", () => choose($("source").value));
  const drop = $("drop");
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  }
  drop.addEventListener("dragleave", (event) => { if (!drop.contains(event.relatedTarget)) drop.classList.remove("over"); });
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length > 1) showError("Drop one file; it may have all rows, or be one of train.");
    else send(event.dataTransfer.files[0]);
  });
  for (const name of COLUMNS) {
    $(name).addEventListener("change", () => { state.set({ [name]: $(name).value }); describe(); });
  }
  fill($("times"), TIMES.map((minutes) => el("button", {
    type: "button", class: "small", onclick: () => { $("minutes").value = minutes; keepBudget(); },
  }, minutes === 60 ? "1 h" : `${minutes} min`)));
  const keepBudget = debounce(() => state.set({ minutes: $("minutes").value, prefer: $("prefer").value }), 200);
  $("minutes").addEventListener("input", keepBudget);
  $("prefer").addEventListener("change", keepBudget);
  $("start").addEventListener("submit", (event) => { event.preventDefault(); start(); });
  $("columns").addEventListener("submit", (event) => event.preventDefault());
  $("another").addEventListener("click", () => go({ solve: null, source: null }));
  state.onChange(restore);
}

/** Show something else, as a step of the browser's back button. */
function go(changes) {
  const cleared = Object.fromEntries([...COLUMNS, "solve"].map((name) => [name, null]));
  state.set({ ...cleared, ...changes }, { push: true });
  return restore();
}

/** Show what the address says. */
async function restore() {
  const view = state.get();
  $("ask").hidden = Boolean(view.solve);
  $("solution").hidden = !view.solve;
  solution.open(view.solve ?? "");
  $("minutes").value = view.minutes ?? 10;
  $("prefer").value = view.prefer ?? "";
  if (view.solve) return;
  $("data").hidden = $("start").hidden = !view.source;
  if (view.source) await describe();
  else described = null;
  showSource();
}

async function send(file) {
  if (!file) return;
  if (file.size > MOST) {
    showError(`${file.name} has ${Math.round(file.size / 1e6)} MB; heedful solve reads files of any size.`);
    return;
  }
  bars.sending.set(-1, `sending ${file.name}`);
  try {
    const { source } = await upload(`/api/solve/upload?name=${encodeURIComponent(file.name)}`, file);
    await go({ source });
    list();
  } catch {
    // The line above the page says why.
  } finally {
    bars.sending.set(null);
    $("file").value = "";
  }
}

const choose = (source) => go({ source });

/** Ask what is in the file, with the columns that are chosen. */
async function describe() {
  const view = state.get();
  const turn = ++asked;
  $("data").hidden = false;
  $("problem").hidden = true;
  $("start").hidden = true;
  const params = Object.fromEntries(["source", ...COLUMNS].map((name) => [name, view[name] ?? ""]));
  let found;
  try {
    found = await api("/api/solve/describe", params, { quiet: true, progress: bars.reading.set });
  } catch (error) {
    if (turn !== asked || error.canceled) return;
    bars.reading.set(null);
    found = { name: view.source, columns: [], problem: error.message };
  }
  if (turn !== asked) return;
  bars.reading.set(null);
  described = found;
  $("data-title").textContent = `What Heedful understood of ${found.name}`;
  $("problem").hidden = !found.problem;
  $("problem").textContent = found.problem ?? "";
  $("start").hidden = Boolean(found.problem);
  offerColumns(found, view);
  showData($("understood"), found);
}

function offerColumns(found, view) {
  $("columns").hidden = found.columns.length === 0;
  const roles = found.roles ?? {};
  const used = { text_column: roles.text, pair_column: roles.pair, label_column: roles.label };
  const first = { pair_column: "none", group: "none named", time: "none named" };
  for (const name of COLUMNS) {
    if (name !== "kind") {
      const auto = used[name] ? `${used[name]} (found)` : first[name] ?? "choose one";
      fill($(name), el("option", { value: "" }, view[name] ? "found from the data" : auto),
        found.columns.filter(Boolean).map((column) => el("option", { value: column }, column)));
      if (view[name] && !found.columns.includes(view[name])) $(name).append(el("option", { value: view[name] }, view[name]));
    }
    $(name).value = view[name] ?? "";
  }
}

async function start() {
  if (!described || described.problem) return;
  const view = state.get();
  const params = { source: view.source, minutes: Number($("minutes").value), prefer: $("prefer").value };
  for (const name of COLUMNS) if (view[name]) params[name] = view[name];
  $("go").disabled = true;
  try {
    const { name } = await api("/api/solve/start", params);
    await go({ solve: name, source: null });
    $("solution-title").focus();
    list();
  } catch {
    // The line above the page says why.
  } finally {
    $("go").disabled = false;
  }
}

const WORDS = { running: "at work", starting: "starting", finished: "finished", stopped: "stopped", failed: "failed" };

/** List the solutions and the files in the folder. */
async function list() {
  const found = await api("/api/solve/list", undefined, { quiet: true }).catch(() => null);
  if (!found) return null;
  files = found.files;
  showSource();
  $("earlier").hidden = found.solutions.length === 0;
  fill($("solutions"), found.solutions.map((one) => el("li", {},
    el("a", { class: "text", href: `#solve=${encodeURIComponent(one.name)}` }, one.name), " ",
    el("span", { class: `badge ${one.state}` }, WORDS[one.state]), " ",
    el("span", { class: "muted text" }, one.summary))));
  return found.solutions;
}

function showSource() {
  const source = state.get().source ?? "";
  const known = source && !files.includes(source) ? [source, ...files] : files;
  $("source-box").hidden = known.length === 0;
  fill($("source"), el("option", { value: "" }, "Choose a file"), known.map((name) => el("option", { value: name }, name)));
  $("source").value = source;
}

setUp();
const solutions = list();
if (!state.get().solve && !state.get().source) {
  // Whoever comes back finds what is at work.
  const working = (await solutions)?.find((one) => ["running", "starting"].includes(one.state));
  if (working) state.set({ solve: working.name });
}
await restore();
