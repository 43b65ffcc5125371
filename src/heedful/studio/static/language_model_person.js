// Of a model that answers questions about people: its answer, who was in training, and how sure it is about whom.

import { el, fill, percent } from "./base.js";

/** Show an answer with its confidence, and what training says about the person: `found`, or an error. */
export function showPerson(element, answer, found) {
  const headline = answer.ended || answer.full
    ? el("p", { class: "headline" }, answer.text || "(nothing)", " ", el("span", { class: "muted" }, percent(answer.probability)))
    : null;
  const confidence = headline && el("p", { class: "muted note" },
    "The confidence is the probability of the whole answer: the product over its tokens.");
  if (!found) {
    fill(element, headline, confidence);
    return;
  }
  if (found.error) {
    fill(element, headline, confidence, el("p", { class: "muted note" }, found.error));
    return;
  }
  const right = found.answer !== null && answer.text === found.answer;
  fill(element, headline, confidence,
    found.answer === null ? null : el("p", {}, "The right answer is ", el("strong", { class: "text" }, found.answer),
      headline ? (right ? ": it is right." : ": it is wrong.") : "."),
    el("p", { class: `verdict ${found.seen ? "good" : "warning"}` }, found.seen ? "✓ " : "⚠ ", found.sentence),
    found.line === null ? null : el("blockquote", {}, found.line));
}

/** Offer somebody of each group to ask about; `ask(question)` hears a choice, another one each time. */
export function offerPeople(element, groups, ask) {
  const turns = new Map();
  element.hidden = groups.length === 0;
  fill(element, groups.length ? el("span", { class: "muted" }, "Ask about somebody who") : null, groups.map((group) => el("button", {
    type: "button",
    onclick: () => {
      const turn = turns.get(group.name) ?? 0;
      turns.set(group.name, turn + 1);
      ask(group.questions[turn % group.questions.length]);
    },
  }, TITLES[group.name] ?? group.title)));
}

const TITLES = {
  seen: "was in the questions", dev: "is only in the biographies", unseen: "exists, but in no text", strangers: "does not exist",
};

/** A table of how sure the model was about groups of people; the confidence now beside it. */
export function showGroups(element, groups) {
  fill(element, el("table", {},
    el("thead", {}, el("tr", {}, ["people who", "questions", "mean confidence", "right"].map((name, i) =>
      el("th", { class: i ? "number" : "", scope: "col" }, name)))),
    el("tbody", {}, groups.map((group) => el("tr", {}, el("td", {}, group.title),
      el("td", { class: "number" }, group.count.toLocaleString("en")), el("td", { class: "number" }, percent(group.confidence)),
      el("td", { class: "number" }, group.right === null ? "" : percent(group.right)))))));
}
