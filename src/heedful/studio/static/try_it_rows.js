// Rows of the data: those nearest to a text in training, and those that a run got wrong.

import { api, el, fill, percent, state } from "./base.js";

const COUNT = 20;

/** Show the training rows that are the nearest to a text. */
export function showNeighbors(element, found) {
  const sampled = found.compared < found.total
    ? `Compared with a sample of ${found.compared.toLocaleString("en")} of ${found.total.toLocaleString("en")} training rows`
    : `Compared with ${found.total.toLocaleString("en")} training rows`;
  fill(element,
    el("p", { class: "muted note" }, `${sampled} by the cosine of ${found.how}.`),
    el("div", { class: "scroll" }, el("table", { class: "stack" },
      el("thead", {}, el("tr", {}, el("th", { class: "number" }, "similarity"), el("th", {}, "label"), el("th", {}, "text"))),
      el("tbody", {}, found.rows.map((row) => el("tr", {},
        el("td", { class: "number" }, row.similarity.toFixed(3)),
        el("td", { class: "text label" }, row.answer),
        el("td", { class: "text" }, row.same ? el("strong", {}, "The same text: ") : null, writeTexts(row))))))));
}

function writeTexts(row) {
  return row.pair === null ? cut(row.text) : [cut(row.text), el("br"), el("span", { class: "muted" }, "— "), cut(row.pair)];
}

const cut = (text) => (text.length > 600 ? `${text.slice(0, 600)}…` : text);

/** Set up the list of mistakes; choosing one calls `take(row)`. */
export function setUpMistakes({ split, kind, box, list }, take) {
  let model = "";
  split.addEventListener("change", () => { state.set({ split: split.value, kind: null }); load(); });
  kind.addEventListener("change", () => { state.set({ kind: kind.value }); load(); });

  function open(name, about) {
    model = name;
    fill(split, about.splits.map((one) => el("option", { value: one.split },
      about.kind === "number" ? `${one.split} (${one.scored.toLocaleString("en")} rows, the largest error first)`
        : `${one.split} (${one.wrong.toLocaleString("en")} of ${one.scored.toLocaleString("en")} wrong)`)));
    const wanted = state.get().split;
    if (about.splits.some((one) => one.split === wanted)) split.value = wanted;
    fill(kind);
    if (about.splits.length) load();
  }

  async function load(start = 0) {
    const wanted = state.get().kind;
    const [right, predicted] = wanted ? JSON.parse(wanted) : [];
    const params = { model, split: split.value, start, count: COUNT, right, predicted };
    let found;
    try {
      found = await api("/api/try_it/mistakes", params);
    } catch {
      return;
    }
    box.hidden = found.kinds.length < 2;
    fill(kind, el("option", { value: "" }, `all ${found.wrong.toLocaleString("en")}`), found.kinds.map(([a, b, count]) =>
      el("option", { value: JSON.stringify([a, b]) }, `${b} for ${a} (${count})`)));
    kind.value = wanted ?? "";
    show(found, start);
  }

  function show(found, start) {
    const rows = found.rows.map((row) => el("tr", {},
      el("td", { class: "number" }, found.numbers ? row.confidence.toPrecision(3) : percent(row.confidence)),
      el("td", { class: "text label", "data-name": "said" }, row.predicted),
      el("td", { class: "text label", "data-name": "right" }, row.right),
      el("td", { class: "text" }, writeTexts(row)),
      el("td", {}, el("button", {
        type: "button", "aria-label": `Explain row ${row.row}`, onclick: () => take(row),
      }, "Explain"))));
    if (start === 0) {
      const head = [found.numbers ? "off by" : "confidence", "said", "right", "text", ""];
      fill(list, rows.length ? el("div", { class: "scroll" }, el("table", { class: "stack" },
        el("thead", {}, el("tr", {}, head.map((name, i) => el("th", { class: i ? "" : "number" }, name)))),
        el("tbody", {}, rows))) : el("p", {}, `It got all ${found.scored.toLocaleString("en")} rows right.`));
    } else {
      list.querySelector("tbody").append(...rows);
    }
    list.querySelector(".more")?.remove();
    const shown = start + rows.length;
    if (shown < found.found) {
      list.append(el("button", { type: "button", class: "more", onclick: () => load(shown) },
        `More (${(found.found - shown).toLocaleString("en")})`));
    }
  }

  return { open };
}
