(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);

  // Titles are wrapped for a wide page; a phone needs shorter lines.
  const wrapWords = (lines, letters) => {
    const wrapped = [""];
    for (const word of lines.join(" ").split(" ")) {
      const last = wrapped[wrapped.length - 1];
      if (last && last.length + 1 + word.length > letters) wrapped.push(word);
      else wrapped[wrapped.length - 1] = last ? last + " " + word : word;
    }
    return wrapped;
  };

  // Legends are laid out for a wide page, too.
  const narrowLegends = (part, width) => {
    if (Array.isArray(part)) return part.map((item) => narrowLegends(item, width));
    if (part === null || typeof part !== "object") return part;
    const copy = {};
    for (const [name, value] of Object.entries(part)) {
      copy[name] = name === "data" ? value : narrowLegends(value, width);
      if (name === "legend" && value?.columns) {
        const letters = Math.max(...value.values.map((text) => text.length));
        const columns = Math.max(1, Math.floor((width - 70) / (7 * letters + 40)));
        copy[name].columns = Math.min(value.columns, columns);
      }
    }
    return copy;
  };

  const narrow = (wide, width) => {
    const specification = narrowLegends(wide, width);
    const title = { ...specification.title };
    title.text = wrapWords(title.text, Math.max(16, Math.floor((width - 60) / 8.6)));
    if (title.subtitle) title.subtitle = wrapWords(title.subtitle, Math.max(20, Math.floor((width - 24) / 6.8)));
    return { ...specification, title };
  };

  // A figure in a closed part has no width yet: it gets the width that it will have when the part is open.
  const isHidden = (element) => element.closest(".part:not([open])") !== null;
  const widthOf = (element) => {
    let part = element.closest(".part");
    if (!isHidden(element)) return element.clientWidth;
    while (part.parentElement.closest(".part")) part = part.parentElement.closest(".part");
    const style = getComputedStyle(part);
    const inside = part.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    // Figures that follow each other are side by side, as in the style of .figures.
    const count = element.closest(".figures")?.children.length ?? 1;
    const columns = Math.max(1, Math.min(count, Math.floor((inside + 32) / (544 + 32))));
    return columns === 1 ? Math.min(inside, 1056) : (inside - 32 * (columns - 1)) / columns;
  };

  // Panels go into as many columns as there is room for; two of them shrink rather than become a long strip.
  const fitColumns = (specification, width) => {
    const across = Math.floor((width - 150) / (specification.spec.width + 18));
    return { ...specification, columns: Math.min(specification.columns, Math.max(2, across)) };
  };

  const draw = async (element) => {
    const width = widthOf(element);
    let specification = data.specifications[Number(element.dataset.figure)];
    if (width < 600) specification = narrow(specification, width);
    if (specification.columns) specification = fitColumns(specification, width);
    const least = Number(element.dataset.least);
    if (specification.width === "container" && (isHidden(element) || width < least)) {
      specification = { ...specification, width: Math.max(width, least) };
    }
    element.dataset.drawnAt = String(window.innerWidth);
    try {
      await window.vegaEmbed(element, specification, {
        actions: { export: { svg: true, png: false }, source: false, compiled: false, editor: false },
        ast: true,
        config: data.config,
        mode: "vega-lite",
        renderer: "svg",
        tooltip: { theme: "custom" },
      });
      element.dataset.drawn = "yes";
    } catch (error) {
      element.textContent = "This figure could not be drawn: " + error.message;
      console.error(error);
    }
  };

  // First the visible figures, then those in closed parts; between two figures the page stays responsive.
  const drawAll = async () => {
    const elements = [...document.querySelectorAll("[data-figure]")];
    for (const element of [...elements.filter((p) => !isHidden(p)), ...elements.filter(isHidden)]) {
      if (element.dataset.drawnAt === undefined) await draw(element);
      await new Promise((next) => setTimeout(next));
    }
    document.documentElement.dataset.ready = "yes";
  };

  const drawOpened = (part) => {
    for (const element of part.querySelectorAll("[data-figure]")) {
      if (!isHidden(element) && element.dataset.drawnAt !== String(window.innerWidth)) draw(element);
    }
  };
  for (const part of document.querySelectorAll(".part")) {
    part.addEventListener("toggle", () => { if (part.open) drawOpened(part); });
  }
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll(".part")) part.open = true;
  });

  // A table that fits needs no fixed first column; one that has been moved shows an edge beside it.
  const checkTables = () => {
    for (const frame of document.querySelectorAll(".scroll")) {
      frame.classList.toggle("fits", frame.scrollWidth <= frame.clientWidth);
      frame.classList.toggle("moved", frame.scrollLeft > 0);
    }
  };
  document.addEventListener("scroll", (event) => {
    if (event.target.classList?.contains("scroll")) checkTables();
  }, { capture: true, passive: true });
  document.addEventListener("toggle", checkTables, { capture: true });
  window.addEventListener("resize", checkTables);
  checkTables();

  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    if (!Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, undefined, { numeric: true });
  };

  const sort = (head) => {
    const table = head.closest("table"), body = table.tBodies[0];
    const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const key = (row) => row.cells[head.cellIndex].dataset.key;
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const left = key(a), right = key(b);
      if (left === "" || right === "") return (left === "") - (right === "");
      return order === "ascending" ? compare(left, right) : compare(right, left);
    });
    body.append(...rows);
  };

  for (const button of document.querySelectorAll("thead th button")) {
    button.addEventListener("click", () => sort(button.parentElement));
  }
  drawAll();
})();
