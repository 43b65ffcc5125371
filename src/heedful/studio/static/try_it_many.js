// Many texts: pasted lines or a file, labeled and downloaded.

import { api, bytes, download, el, fill, progressBar, showError } from "./base.js";

const MOST = 32 * 1024 * 1024;

/** Set up the form; `now()` returns the chosen model and what it does. */
export function setUpMany(element, now) {
  const bar = progressBar("Labeling");
  const lines = el("textarea", { id: "lines", rows: 5, "aria-label": "One text per line" });
  const file = el("input", {
    type: "file", id: "file", "aria-label": "A file of texts",
    accept: ".csv,.tsv,.jsonl,.parquet,.arrow,.xlsx,.txt,.gz,.bz2,.xz,.zst", onchange: () => label(),
  });
  const form = el("select", { id: "form", "aria-label": "Form of the labeled file" },
    [".csv", ".tsv", ".jsonl", ".parquet"].map((suffix) => el("option", { value: suffix }, suffix)));
  const every = el("input", { type: "checkbox", id: "every" });
  const everyBox = el("label", {}, every, " a column per label");
  const result = el("div", { id: "labeled" });
  const go = el("button", { type: "button", class: "main", onclick: () => label({ pasted: true }) }, "Label these lines");
  const hint = el("p", { class: "muted" });
  fill(element, hint, lines,
    el("div", { class: "row" }, go, el("label", {}, "or a file ", file), el("label", {}, "as ", form), everyBox),
    bar.element, result);
  element.addEventListener("dragover", (event) => { event.preventDefault(); element.classList.add("over"); });
  element.addEventListener("dragleave", () => element.classList.remove("over"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    element.classList.remove("over");
    if (event.dataTransfer.files.length) label({ dropped: event.dataTransfer.files[0] });
  });

  function open() {
    const { about } = now();
    const pairs = about.pairs ? "Paste two columns of a spreadsheet: the two texts of each line with a tab between them."
      : "Paste one text per line";
    hint.textContent = `${pairs}${about.pairs ? "" : ", or"} ${about.pairs ? "Or " : ""}drop a file here: `
      + ".csv, .tsv, .jsonl, .parquet, .xlsx or .txt, at most 32 MB. The labeled file has all its columns and the answers.";
    everyBox.hidden = about.free || !["classify", "ordered"].includes(about.kind);
    fill(result);
  }

  async function label({ pasted = false, dropped = null } = {}) {
    const source = pasted ? packLines(lines.value, now().about) : dropped ?? file.files[0];
    if (!source) {
      if (pasted) showError("Paste some lines first.");
      return;
    }
    if (source.size > MOST) {
      showError(`The file has ${Math.round(source.size / 1e6)} MB; heedful predict labels files of any size.`);
      return;
    }
    const query = new URLSearchParams({
      model: now().model, name: source.name, suffix: form.value, probabilities: every.checked && !everyBox.hidden ? "1" : "0",
    });
    bar.set(-1, "labeling");
    fill(result);
    go.disabled = true;
    try {
      const found = await api(`/api/try_it/file?${query}`, undefined, { body: source, progress: bar.set });
      show(found, source.name);
    } catch {
      // The line above the page says why.
    } finally {
      bar.set(null);
      go.disabled = false;
      file.value = "";
    }
  }

  function show(found, name) {
    const target = `${name.replace(/\.(gz|bz2|xz|zst)$/i, "").replace(/\.\w+$/, "")}-labeled${found.file.replace(/^labeled/, "")}`;
    const counts = Object.entries(found.counts).sort((a, b) => b[1] - a[1]).slice(0, 12);
    const { columns, rows } = found.preview;
    const added = new Set(found.columns);
    fill(result,
      el("div", { class: "row" },
        el("strong", {}, `${found.rows.toLocaleString("en")} ${found.rows === 1 ? "row" : "rows"} labeled`),
        el("button", {
          type: "button", class: "main",
          onclick: async () => download(new Blob([await bytes(`/api/try_it/labeled/${found.download}`)]), target),
        }, `Download ${target}`)),
      counts.length ? el("p", { class: "text" }, counts.map(([one, count]) => `${one}: ${count.toLocaleString("en")}`).join(", ")) : null,
      found.calibrated ? el("p", { class: "muted note" }, "The confidences are calibrated.") : null,
      el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, columns.map((column) => el("th", { class: "text" }, column)))),
        el("tbody", {}, rows.map((cells) => el("tr", {},
          cells.map((cell, i) => el("td", { class: `text ${added.has(columns[i]) ? "added" : ""}` }, cell))))))),
      found.rows > rows.length ? el("p", { class: "muted" }, `The first ${rows.length} rows.`) : null);
  }

  return { open };
}

/** Make a file of pasted lines: JSON, in which a text is a text whatever it contains. */
function packLines(text, about) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  if (!lines.length) return null;
  const rows = lines.map((line) => {
    if (!about.pairs) return { text: line };
    const [first, ...rest] = line.split("\t");
    return { text: first, pair: rest.join(" ") };
  });
  return new File(rows.map((row) => `${JSON.stringify(row)}\n`), "lines.jsonl");
}
