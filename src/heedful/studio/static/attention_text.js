// One head in the text itself: how much the chosen token attends to each token.

import { el, fill } from "./base.js";
import { makeScale, scaleColor, shade } from "./attention_colors.js";
import { showWeight } from "./attention_data.js";

/** Return a view as of `makeMatrix`: buttons in the order of the text. */
export function makeText({ told, pick }) {
  let map;
  let selected = null;
  const element = el("div", { class: "viewport words", role: "group", "aria-label": "Tokens: choose the one that attends" });

  function draw() {
    const scale = makeScale();
    const focused = [...element.children].indexOf(document.activeElement);
    const square = map.rows.length === map.columns.length;
    const row = selected ?? 0;
    fill(element, map.columns.map((name, column) => {
      const weight = map.at(row, column);
      const place = shade(weight);
      return el("button", {
        type: "button", class: `word${place > 150 ? " strong" : ""}`, "aria-pressed": String(square && column === row),
        "aria-label": `${name}, ${showWeight(weight)}`, style: { "--shade": scaleColor(scale, place) },
        onpointerenter: () => told({ row, column }), onfocus: () => told({ row, column }), onpointerleave: () => told(null),
        onclick: () => { if (square) pick(column); },
      }, name);
    }));
    if (focused >= 0) element.children[focused]?.focus();
  }

  return {
    element,
    show(next, row) {
      const other = map?.columns.length !== next.columns.length;
      map = next;
      selected = row;
      draw();
      const chosen = other && row !== null ? element.children[row] : null;
      if (chosen) element.scrollTop = chosen.offsetTop - element.clientHeight / 2;
    },
    select(row) { selected = row; draw(); },
    recolor() { draw(); },
    zoom() {},
    size: 16,
    end() {},
  };
}
