// An average taken apart: the oblique projection, and how it stretches noise as two subspaces close.

import { el } from "../base.js";
import { makeChart } from "./chart.js";
import { norm, times } from "./math.js";
import { button, fold, say, slider, tuple, vectorsBox, verdict } from "./parts.js";
import { makeScene } from "./scene.js";

export const defaults = {
  a: [[1, 0.2]],
  b: [[0.4, 1]],
  one: [[1.6]],
  other: [[1.2]],
  noise: 0.05,
  turn: 30,
  tilt: 20,
};

const SPACE = { a: [[1, 0, 0.1], [0, 0.2, 1]], b: [[0.2, 1, 0.2]], one: [[1.2, 0.8]], other: [[1.4]] };
const HANDLE = 2.7;
const A = "var(--series-0)";
const B = "var(--series-1)";

export function build({ settings, change }) {
  const scene = makeScene({ name: "subspaces", onMove: move, onTurn: (turned) => change(turned, { silent: true }) });
  const chart = makeChart("subspace noise");
  const says = verdict();
  const matrix = el("div", {});
  const noise = slider({
    label: "Noise on the average", min: -3, max: -0.3, step: 0.05, format: (value) => say(10 ** value, 2),
    onInput: (value) => change({ noise: Number((10 ** value).toPrecision(2)) }),
  });
  const angle = slider({ label: "Angle between A and B", min: 1, max: 90, step: 1, format: (value) => `${value}°`, onInput: turnTo });
  const boxes = Object.fromEntries([["a", "A is spanned by"], ["b", "B is spanned by"], ["one", "v_a in A"], ["other", "v_b in B"]]
    .map(([name, label]) => [name, vectorsBox({ label, onPick: (rows) => change({ [name]: rows }) })]));
  let found = null;

  const tip = (basis) => times(HANDLE / (norm(basis) || 1), basis);
  const mixed = (factors, basis) => basis[0].map((_, c) => factors.reduce((sum, f, i) => sum + f * basis[i][c], 0));
  const tidy = (vector) => vector.map((c) => Number(c.toFixed(3)));

  function move(id, at) {
    if (id[0] === "a" || id[0] === "b") {
      if (norm(at) < 0.1) return;
      const name = id[0];
      change({ [name]: settings[name].map((row, i) => (i === Number(id[1]) ? tidy(times(1 / HANDLE, at)) : row)) });
    } else {
      const [name, factors] = id === "va" ? ["a", "one"] : ["b", "other"];
      change({ [factors]: [tidy(nearest(at, settings[name]))] });
    }
  }

  /** The factors of the point of a line or a plane that is the nearest. */
  function nearest(at, basis) {
    const dot = (x, y) => x.reduce((sum, c, i) => sum + c * y[i], 0);
    if (basis.length === 1) return [dot(at, basis[0]) / dot(basis[0], basis[0])];
    const [p, q] = basis;
    const [pp, pq, qq, ap, aq] = [dot(p, p), dot(p, q), dot(q, q), dot(at, p), dot(at, q)];
    const det = pp * qq - pq * pq || 1e-9;
    return [(ap * qq - aq * pq) / det, (aq * pp - ap * pq) / det];
  }

  /** Turn B (in the plane) to this angle to A; in space toward the foot of B on A. */
  function turnTo(degrees) {
    const t = (degrees * Math.PI) / 180;
    const b = settings.b[0];
    const foot = mixed(nearest(b, settings.a), settings.a);
    const along = norm(foot) > 1e-6 ? foot : settings.a[0];
    const u = times(1 / norm(along), along);
    const dot = u.reduce((sum, c, i) => sum + c * b[i], 0);
    let across = b.map((c, i) => c - dot * u[i]);
    if (norm(across) < 1e-6) across = u.length === 2 ? [-u[1], u[0]] : [0, 1, 0];
    across = times(1 / norm(across), across);
    change({ b: [tidy(u.map((c, i) => norm(b) * (Math.cos(t) * c + Math.sin(t) * across[i])))] });
  }

  function draw() {
    const { a, b, one: [one], other: [other] } = settings;
    const flat = a[0].length === 2;
    const zero = a[0].map(() => 0);
    const [va, vb] = [mixed(one, a), mixed(other, b)];
    const average = va.map((c, i) => (c + vb[i]) / 2);
    const fits = found && found.average.length === zero.length ? found : null;
    const range = 3;
    const through = (row, paint) => ({ from: times(-range / (norm(row) || 1), row), to: times(range / (norm(row) || 1), row), color: paint, wide: 2 });
    const [p, q] = a;
    const corners = a.length === 2 ? [[1, 1], [1, -1], [-1, -1], [-1, 1]].map(([s, t]) => p.map((c, i) => 2 * (s * c / norm(p) + t * q[i] / norm(q)))) : null;
    scene.draw({
      label: "Two subspaces, two values and their average", range, turn: settings.turn, tilt: settings.tilt,
      areas: corners ? [{ corners, color: A }] : [],
      segments: [...(corners ? [] : [through(a[0], A)]), ...b.map((row) => through(row, B)),
        { from: zero, to: va, color: A, wide: 4, arrow: true }, { from: zero, to: vb, color: B, wide: 4, arrow: true },
        { from: va, to: vb, color: "var(--muted)", dash: true, wide: 1 },
        ...(fits?.recovered ? [{ from: average, to: fits.recovered, color: "var(--good)", dash: true, wide: 1.5 }] : [])],
      dots: fits?.cloud ? [...fits.cloud.map((at) => ({ at, color: "var(--muted)" })), ...fits.recovered_cloud.map((at) => ({ at, color: "var(--good)" }))] : [],
      points: [
        ...a.map((row, i) => ({ id: `a${i}`, name: a.length > 1 ? `A ${i + 1}` : "A", at: tip(row), color: A, shape: "square", size: 7, movable: true, note: "turns A" })),
        ...b.map((row, i) => ({ id: `b${i}`, name: "B", at: tip(row), color: B, shape: "square", size: 7, movable: true, note: "turns B" })),
        ...(fits ? [{ id: "s", name: "orthogonal", at: fits.straight, color: "var(--muted)", size: 6, below: true }] : []),
        ...(fits?.recovered ? [{ id: "r", name: "", at: fits.recovered, color: "var(--good)", ring: true, size: 13 }] : []),
        { id: "va", name: "v_a", at: va, color: A, movable: true, strong: true, size: 8 },
        { id: "vb", name: "v_b", at: vb, color: B, movable: true, strong: true, size: 8 },
        { id: "m", name: flat ? "average" : "avg", at: average, color: "var(--ink)", size: 6 },
      ],
    });
    noise.set(Math.log10(settings.noise));
    if (fits) angle.set(Math.max(1, Math.round(fits.angle)));
    for (const [name, box] of Object.entries(boxes)) box.set(settings[name]);
  }

  function show(answer) {
    found = answer;
    draw();
    if (!answer.exists) {
      says.set(false, `A and B share the direction ${tuple(answer.common)}: no matrix recovers v_a, because w and −w average to nothing.`);
    } else {
      says.set(true, `M × average = ${tuple(answer.recovered)}, which is v_a = ${tuple(answer.v_a)}. At ${answer.angle.toFixed(1)}° noise grows by 1 / sin = ${say(answer.amplification)}: `,
        `${say(settings.noise)} on the average becomes an error of ${say(answer.error)} in v_a. `,
        answer.angle > 89.99 ? "" : `The orthogonal projection would return ${tuple(answer.straight)}.`);
    }
    matrix.replaceChildren(answer.matrix ? el("table", { "aria-label": "The matrix M" }, el("tbody", {},
      answer.matrix.map((row) => el("tr", {}, row.map((c) => el("td", { class: "number" }, c.toFixed(3))))))) : el("p", {}, "There is none."));
    const colors = ["var(--muted)", "var(--series-0)", "var(--good)", "var(--good)"];
    chart.draw({
      label: "Error of the recovered value against the angle",
      series: Object.entries(answer.curves).map(([name, points], i) => ({ name: name.replace(/, 2 A .*/, ""), points, color: colors[i], dash: i === 3, rings: i === 2 })),
      x: { title: "angle between A and B (degrees)", domain: [0, 90] }, y: { title: "error of the recovered v_a", domain: [0, 1.4] },
      marker: { x: Math.min(90, answer.angle), name: `${answer.angle.toFixed(1)} degrees`, onMove: (x) => turnTo(Math.max(0.5, Math.min(90, x))) },
    });
  }

  const tools = el("div", { class: "row" },
    [90, 60, 30, 10, 3].map((degrees) => button(`${degrees}°`, () => turnTo(degrees))),
    button("A common direction", () => change({ b: [settings.a[0]] })),
    button("A plane and a line", () => change(structuredClone(SPACE), { push: true })),
    button("Two lines", () => change(structuredClone(defaults), { push: true })));
  const element = el("div", {}, says.element, tools,
    el("div", { class: "stage wide" }, el("div", {}, scene.element),
      el("div", {}, el("div", { class: "sliders" }, angle.element, noise.element), el("h3", {}, "What noise becomes"), chart.element, el("h3", {}, "The matrix M"), matrix)),
    fold("Type the vectors", el("div", { class: "typed" }, Object.values(boxes).map((box) => box.element))));
  return { element, draw, show };
}
