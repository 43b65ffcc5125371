// Small maps of all heads, each a button.

import { el, fill } from "./base.js";
import { makeScale, paintCells } from "./attention_colors.js";
import { nameHead } from "./attention_data.js";

/** Return `show`, `select` and `effects` for the grid in an element.
 * `pick(layer, head)` hears what is chosen, `toggle(layer, head)` which head is switched off or on. */
export function makeGrid(element, { pick, toggle }) {
  let buttons = [];
  let header, small, width;
  let off = new Set();

  const key = (row, column) => ({ layer: row + 1, head: headName(column) });
  const headName = (column) => (column < header.heads ? String(column + 1) : column === header.heads ? "mean" : "rollout");

  function build() {
    width = header.heads + 2;
    buttons = [];
    const titles = Array.from({ length: width }, (_, column) => el("span", { class: "title", "aria-hidden": "true" },
      column < header.heads ? column + 1 : column === header.heads ? "mean" : "roll-out"));
    const rows = Array.from({ length: header.layers }, (_, row) => {
      const cells = Array.from({ length: width }, (_, column) => {
        const { layer, head } = key(row, column);
        const button = el("button", {
          type: "button", class: "thumb", tabindex: -1, onclick: () => { focus(button, false); pick(layer, head); },
        }, el("canvas", { "aria-hidden": "true" }));
        buttons.push(button);
        return button;
      });
      return [el("span", { class: "title", "aria-hidden": "true" }, row + 1), cells];
    });
    const grid = el("div", {
      class: "thumbs", role: "group", "aria-label": "Layers and heads; the arrow keys move, x switches a head off",
      style: { "--columns": String(width) }, onkeydown: move,
    }, el("span", { class: "title", "aria-hidden": "true" }, "layer"), titles, rows);
    fill(element, grid);
  }

  function move(event) {
    const at = buttons.indexOf(event.target);
    if (at < 0) return;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width };
    if (event.key === "x" || event.key === "Delete") {
      const { layer, head } = key(Math.floor(at / width), at % width);
      if (Number(head)) toggle(layer, head);
      event.preventDefault();
    } else if (event.key in steps) {
      const next = buttons[at + steps[event.key]];
      if (next) focus(next, true);
      event.preventDefault();
    }
  }

  function focus(button, really) {
    for (const one of buttons) one.tabIndex = one === button ? 0 : -1;
    if (really) button.focus();
  }

  function paint() {
    const scale = makeScale();
    const [, heads, rows, columns] = header.small;
    buttons.forEach((button, i) => {
      const start = i * rows * columns;
      const canvas = button.querySelector("canvas");
      if (heads * header.layers !== buttons.length) return;
      canvas.width = columns;
      canvas.height = rows;
      canvas.getContext("2d").drawImage(paintCells(rows, columns, scale, (cell) => small[start + cell]), 0, 0);
    });
  }

  function label() {
    buttons.forEach((button, i) => {
      const { layer, head } = key(Math.floor(i / width), i % width);
      const isOff = off.has(`${layer}.${head}`);
      const name = `${nameHead(layer, head)}${isOff ? ", off" : ""}${button.dataset.effect ?? ""}`;
      button.classList.toggle("off", isOff);
      button.setAttribute("aria-label", name);
      button.title = name;
    });
  }

  return {
    /** Show the small maps of an answer; `heads` has those that are off, as "layer.head". */
    show(next, maps, heads) {
      const same = header && next.layers === header.layers && next.heads === header.heads && buttons.length;
      [header, small, off] = [next, maps, heads];
      if (!same) build();
      label();
      paint();
    },
    select(layer, head) {
      buttons.forEach((button, i) => {
        const at = key(Math.floor(i / width), i % width);
        const chosen = at.layer === layer && at.head === head;
        button.setAttribute("aria-pressed", String(chosen));
        if (chosen) focus(button, false);
      });
    },
    /** Mark each head with its effect: `values` maps "layer.head" to [share of the largest, words]. */
    effects(values) {
      buttons.forEach((button, i) => {
        const { layer, head } = key(Math.floor(i / width), i % width);
        const [share, words] = values?.get(`${layer}.${head}`) ?? [0, ""];
        button.style.setProperty("--effect", `${Math.round(100 * share)}%`);
        button.dataset.effect = words && `: ${words}`;
      });
      label();
    },
    recolor() { if (small) paint(); },
    /** The canvases with their rows and columns, for a figure. */
    get cells() {
      return buttons.map((button, i) => ({
        canvas: button.querySelector("canvas"), row: Math.floor(i / width), column: i % width, off: button.classList.contains("off"),
      }));
    },
  };
}
