// Charts of heedful.report in a page: as wide as there is room, with buttons that save them.

import { el, fill, saveButtons, vega } from "./base.js";

const NARROW = 600;

/** Draw a chart in an element, again when the width of the element changes. `name` is that of the saved file. */
export async function drawChart(element, chart, name) {
  const place = el("div", { class: "plot" });
  fill(element, place, saveButtons(() => place.querySelector("svg"), name));
  element.observer?.disconnect();
  let width = 0;
  let view = null;
  let drawing = Promise.resolve();
  const draw = async () => {
    const now = Math.floor(element.clientWidth);
    if (!now || Math.abs(now - width) < 8 || !element.isConnected) return;
    width = now;
    const next = await vega(place, fit(chart, width));
    view?.view.finalize();
    view = next;
  };
  const enqueue = () => (drawing = drawing.then(draw));
  element.observer = new ResizeObserver(enqueue);
  await enqueue();
  element.observer.observe(element);
}

function fit(chart, width) {
  const title = { ...chart.title };
  if (width < NARROW) {
    title.text = wrap(title.text, Math.floor((width - 40) / 8.6));
    if (title.subtitle) title.subtitle = wrap(title.subtitle, Math.floor((width - 24) / 6.8));
  }
  const narrow = width < NARROW ? fitLegends(chart, width) : chart;
  const flexible = typeof chart.width === "number" && chart.width >= 400;
  const size = flexible ? { width: Math.min(width, 900), autosize: { type: "fit-x", contains: "padding" } } : {};
  return { ...narrow, ...size, title };
}

/** Break lines of words so that each has at most this many letters, if its words are that short. */
function wrap(lines, letters) {
  const wrapped = [""];
  for (const word of [lines].flat().join(" ").split(" ")) {
    const last = wrapped[wrapped.length - 1];
    if (last && last.length + 1 + word.length > Math.max(16, letters)) wrapped.push(word);
    else wrapped[wrapped.length - 1] = last ? `${last} ${word}` : word;
  }
  return wrapped;
}

/** Put the entries of legends into as many columns as there is room for. */
function fitLegends(part, width) {
  if (Array.isArray(part)) return part.map((item) => fitLegends(item, width));
  if (part === null || typeof part !== "object") return part;
  return Object.fromEntries(Object.entries(part).map(([name, value]) => {
    if (name === "data") return [name, value];
    if (name === "legend" && value?.columns && value.values) {
      const letters = Math.max(...value.values.map((text) => String(text).length));
      const columns = Math.max(1, Math.floor((width - 70) / (7 * letters + 40)));
      return [name, { ...value, columns: Math.min(value.columns, columns) }];
    }
    return [name, fitLegends(value, width)];
  }));
}
