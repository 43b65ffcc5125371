// Which runs are listed, and in which order.

import { state } from "./base.js";

export const COLUMNS = [
  { title: "Select", hidden: true, class: "pick" },
  { title: "Run", key: "name", class: "name" },
  { title: "State", key: "state", class: "state" },
  { title: "Score", key: "score", class: "number" },
  { title: "Dev", class: "spark" },
  { title: "Checks", key: "checks", class: "checks" },
  { title: "Trained", key: "time", class: "number" },
  { title: "Changed", key: "changed", class: "number" },
  { title: "What to do", hidden: true, class: "do" },
];
const FIRST = ["running", "starting", "queued", "failed", "damaged"];
const GROUPS = {
  running: ["running", "starting", "queued"],
  finished: ["finished"],
  stopped: ["stopped", "pruned"],
  failed: ["failed", "damaged"],
};

/** What the address says about the list. */
export function readView() {
  const view = state.get();
  const known = Boolean(view.sort) && COLUMNS.some((column) => column.key === view.sort);
  return {
    words: (view.q ?? "").toLowerCase().split(/\s+/).filter(Boolean),
    state: view.state ?? "", inside: Boolean(view.inside), study: view.study ?? "",
    sort: known ? view.sort : "state", reverse: Boolean(view.reverse),
  };
}

export function matches(row, view) {
  if (view.study) {
    if (row.study !== view.study) return false;
  } else if (row.study && !view.inside) return false;
  if (view.state === "checks" ? !row.checks.length : view.state && !(GROUPS[view.state] ?? []).includes(row.state)) return false;
  if (!view.words.length) return true;
  const text = `${row.name} ${row.task} ${row.model} ${row.method} ${row.note} ${row.question} ${row.kind}`.toLowerCase();
  return view.words.every((word) => text.includes(word));
}

const KEYS = {
  // Those that work are first, in the order of their names: their folders change all the time.
  state: (row) => (FIRST.includes(row.state) ? [FIRST.length - FIRST.indexOf(row.state), 0] : [0, row.changed]),
  score: (row) => [row.score ? row.score.value : -Infinity],
  checks: (row) => [row.checks.filter((check) => check.status === "failed").length, row.checks.length],
  time: (row) => [row.seconds ?? -Infinity],
  changed: (row) => [FIRST.indexOf(row.state) === 0 ? Infinity : row.changed],
};
const byName = new Intl.Collator("en", { numeric: true }).compare;

/** Compare two rows for the chosen order: the largest first, names from a to z; rows without a value come last. */
export function compareRows(a, b, { sort, reverse }) {
  const sign = reverse ? -1 : 1;
  if (sort === "name") return sign * byName(a.name, b.name);
  const [one, other] = [KEYS[sort](a), KEYS[sort](b)];
  for (let i = 0; i < one.length; i += 1) {
    if (one[i] === other[i]) continue;
    if (one[i] === -Infinity || other[i] === -Infinity) return one[i] === -Infinity ? 1 : -1;
    return sign * (other[i] - one[i]);
  }
  return byName(a.name, b.name);
}
