// The colors of weights: from the page's paper over the first color of the theme towards the ink.

/** A color of the theme, such as "series-0", as three numbers. */
export function readColor(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

const mix = (a, b, share) => a.map((value, i) => Math.round(value + (b[i] - value) * share));

/** 256 colors for a weight's square root from 0 to 1, as red, green and blue one after the other. */
export function makeScale() {
  const [paper, color, ink] = [readColor("paper"), readColor("series-0"), readColor("ink")];
  const scale = new Uint8Array(256 * 3);
  for (let i = 0; i < 256; i++) {
    const share = i / 255;
    scale.set(share < 0.8 ? mix(paper, color, share / 0.8) : mix(color, ink, (share - 0.8) * 3), 3 * i);
  }
  return scale;
}

/** The place of a weight in the scale. */
export const shade = (weight) => Math.round(255 * Math.sqrt(Math.min(1, Math.max(0, weight))));

export const css = (name) => `rgb(${readColor(name).join(" ")})`;

/** The color of a place in the scale. */
export const scaleColor = (scale, at) => `rgb(${scale[3 * at]} ${scale[3 * at + 1]} ${scale[3 * at + 2]})`;

/** A canvas with one point per cell; `place(i)` is the place of cell i in the scale. */
export function paintCells(rows, columns, scale, place) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const cells = new Uint32Array(image.data.buffer);
  const packed = Uint32Array.from({ length: 256 }, (_, i) =>
    ((255 << 24) | (scale[3 * i + 2] << 16) | (scale[3 * i + 1] << 8) | scale[3 * i]) >>> 0);
  for (let i = 0; i < cells.length; i++) cells[i] = packed[place(i)];
  context.putImageData(image, 0, 0);
  return canvas;
}
