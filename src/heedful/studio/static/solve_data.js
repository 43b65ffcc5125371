// What a file of labeled texts contains: rows, labels, lengths, duplicates, and what is wrong with it.

import { el, fill, percent, saveButtons } from "./base.js";
import { drawBars } from "./bars.js";
import { drawChart } from "./charts.js";

const KINDS = {
  classify: "one label per text", label: "one label per text", labels: "any number of labels per text",
  ordered: "one of several classes with an order", number: "a number per text",
};
const count = (number, one, several = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : several}`;

/** Show what `/api/solve/describe` has found. */
export function showData(element, found) {
  if (!found.facts) {
    fill(element, found.preview?.length ? showPreview(found) : null);
    return;
  }
  const labels = el("div", { class: "chart" });
  const lengths = el("div", { class: "chart" });
  const named = found.labels.length > 0;
  fill(element,
    el("ul", { class: "facts" }, listFacts(found).map((line) => el("li", { class: "text" }, line))),
    listProblems(found),
    el("div", { class: "columns" },
      named ? el("section", { "aria-labelledby": "labels-title" },
        el("h3", { id: "labels-title" }, "Labels"), labels,
        saveButtons(() => labels.querySelector("svg"), `labels ${found.name}`)) : null,
      el("section", { "aria-labelledby": "lengths-title" }, el("h3", { id: "lengths-title" }, "Lengths"), lengths)),
    el("details", { open: true }, el("summary", {}, "The first rows"), showPreview(found)),
    listExamples(found));
  if (named) drawLabels(labels, found);
  drawChart(lengths, found.lengths, `lengths ${found.name}`);
}

function listFacts({ facts, roles, tokenizer, split_notes: notes }) {
  const splits = Object.entries(facts.splits);
  const rows = splits.map(([name, part]) => `${part.rows.toLocaleString("en")} ${name}`).join(", ");
  const total = splits.reduce((sum, [, part]) => sum + part.rows, 0);
  const longest = Math.max(...splits.map(([, part]) => part.lengths.max));
  const cut = splits.reduce((sum, [, part]) => sum + part.truncated * part.rows, 0) / total;
  const columns = Object.entries(roles).map(([role, name]) => `${role} is “${name}”`).join(", ");
  const middle = facts.splits.train.lengths.p50;
  return [
    `${count(total, "row")}: ${rows}. Dev selects the model, test is scored once.`,
    `Columns: ${columns}.`,
    `Kind: ${KINDS[facts.kind] ?? facts.kind} (${facts.kind_reason}).`,
    `Half of the texts have at most ${count(middle, "token")} (${tokenizer}), the longest ${longest.toLocaleString("en")}`
      + `${cut > 0 ? `; of ${percent(cut)} the encoder reads the first ${facts.max_len} tokens alone` : ""}.`,
    ...notes,
  ];
}

function listProblems(found) {
  const { facts } = found;
  const lines = [...found.notices];
  for (const [name, part] of Object.entries(facts.splits)) {
    if (part.duplicates) lines.push(`${name}: ${count(part.duplicates, "row repeats", "rows repeat")} another one of ${name}.`);
  }
  for (const [names, shared] of Object.entries(facts.shared)) {
    if (shared.rows) lines.push(`${count(shared.rows, "row is", "rows are")} both in ${names.replace(" and ", " and in ")}.`);
  }
  const details = [
    ["Rows that are left out", found.bad_rows.map((row) => el("li", { class: "text" }, row))],
    ["Texts with several labels", found.contradictions.map((one) => el("li", { class: "text" },
      el("strong", {}, one.labels.join(", ")), `: ${one.text}`))],
  ].filter(([, items]) => items.length);
  if (!lines.length && !details.length) return el("p", { class: "good" }, "No problem was found in its rows.");
  return el("section", { "aria-labelledby": "problems-title" },
    el("h3", { id: "problems-title" }, "What to look at"),
    el("ul", {}, lines.map((line) => el("li", { class: "text" }, line))),
    details.map(([title, items]) => el("details", {},
      el("summary", {}, `${title} (${items.length}${items.length >= 20 ? " or more" : ""})`), el("ul", {}, items))));
}

function drawLabels(element, { labels, facts }) {
  const total = Object.values(facts.splits).reduce((sum, part) => sum + part.rows, 0);
  drawBars(element, labels.map(({ label, rows }) => ({
    name: label, value: rows, number: percent(rows / total), note: count(rows, "row"),
  })), { label: "Share of the rows that have each label" });
}

function showPreview({ columns, preview, header }) {
  return el("div", { class: "scroll" }, el("table", { class: "preview" },
    el("caption", { class: "muted note" }, header ? "The first rows of the file" : "The file has no header; its columns are numbered"),
    el("thead", {}, el("tr", {}, columns.map((column) => el("th", { scope: "col", class: "text" }, column)))),
    el("tbody", {}, preview.map((row) => el("tr", {}, row.map((cell) => el("td", { class: "text" }, cell)))))));
}

function listExamples({ examples }) {
  const rows = Object.entries(examples).slice(0, 20).flatMap(([label, texts]) => texts.map((text, i) => [i ? "" : label, text]));
  return el("details", {}, el("summary", {}, "Examples per label"),
    el("div", { class: "scroll" }, el("table", {}, el("tbody", {}, rows.map(([label, text]) => el("tr", {},
      el("th", { scope: "row", class: "text" }, label), el("td", { class: "text" }, text)))))));
}
