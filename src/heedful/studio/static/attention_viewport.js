// A canvas as large as what is seen of a larger figure, which scrolls.

import { el } from "./base.js";

/** An element that scrolls over a figure of any size and draws only what is seen.
 *
 * `paint(context, seen)` draws, with `seen` = {x, y, width, height} of the figure; `point(x, y)` and `press(x, y)` get
 * places in what is seen; `leave()` when the pointer goes; `key(event)` returns whether it took the key. */
export class Viewport {
  constructor({ label, paint, point, press, leave, key }) {
    this.paint = paint;
    this.canvas = el("canvas");
    this.sizer = el("div", { class: "sizer" }, this.canvas);
    this.element = el("div", { class: "viewport", tabindex: 0, role: "group", "aria-label": label }, this.sizer);
    this.size = { width: 0, height: 0 };
    this.element.addEventListener("scroll", () => this.draw());
    const place = (event) => {
      const box = this.element.getBoundingClientRect();
      return [event.clientX - box.left - this.element.clientLeft, event.clientY - box.top - this.element.clientTop];
    };
    this.canvas.addEventListener("pointermove", (event) => point(...place(event)));
    this.canvas.addEventListener("pointerdown", (event) => press(...place(event)));
    this.canvas.addEventListener("pointerleave", leave);
    this.element.addEventListener("keydown", (event) => { if (key(event)) event.preventDefault(); });
    this.observer = new ResizeObserver(() => this.resized?.());
    this.observer.observe(this.element);
  }

  /** Give the figure a size; the element is as high as the figure, up to a part of the window. */
  resize(width, height) {
    this.size = { width, height };
    this.sizer.style.setProperty("width", `${width}px`);
    this.sizer.style.setProperty("height", `${height}px`);
    this.draw();
  }

  get seen() {
    const { scrollLeft: x, scrollTop: y, clientWidth, clientHeight } = this.element;
    return { x, y, width: Math.min(clientWidth, this.size.width), height: Math.min(clientHeight, this.size.height) };
  }

  /** Scroll until a box of the figure is seen beside margins that do not scroll. */
  reveal(box, margin) {
    const { seen, element } = this;
    if (box.x < seen.x + margin.x) element.scrollLeft = box.x - margin.x;
    else if (box.x + box.width > seen.x + seen.width) element.scrollLeft = box.x + box.width - seen.width;
    if (box.y < seen.y + margin.y) element.scrollTop = box.y - margin.y;
    else if (box.y + box.height > seen.y + seen.height) element.scrollTop = box.y + box.height - seen.height;
  }

  /** Draw in the next frame. */
  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      const seen = this.seen;
      const ratio = window.devicePixelRatio || 1;
      const [width, height] = [Math.round(seen.width * ratio), Math.round(seen.height * ratio)];
      if (!width || !height) return;
      if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
      this.canvas.style.setProperty("width", `${seen.width}px`);
      this.canvas.style.setProperty("height", `${seen.height}px`);
      const context = this.canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, seen.width, seen.height);
      this.paint(context, seen);
    });
  }

  end() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }
}

/** Text that fits into a width, measured with the context's font. */
export function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const characters = [...text];
  while (characters.length > 1 && context.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}
