(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);

  // Titles are folded for a wide page; a phone needs shorter lines.
  const fold = (lines, letters) => {
    const folded = [""];
    for (const word of lines.join(" ").split(" ")) {
      const last = folded[folded.length - 1];
      if (last && last.length + 1 + word.length > letters) folded.push(word);
      else folded[folded.length - 1] = last ? last + " " + word : word;
    }
    return folded;
  };

  const fitted = (specification, width) => {
    const title = { ...specification.title };
    title.text = fold(title.text, Math.max(16, Math.floor((width - 90) / 8.2)));
    if (title.subtitle) title.subtitle = fold(title.subtitle, Math.max(20, Math.floor((width - 90) / 6.2)));
    return { ...specification, title };
  };

  // A figure in a closed part has no width of its own: it gets the one it will have when the part is open.
  const isHidden = (place) => place.closest(".part:not([open])") !== null;
  const widthOf = (place) => {
    let part = place.closest(".part");
    if (!isHidden(place)) return place.clientWidth;
    while (part.parentElement.closest(".part")) part = part.parentElement.closest(".part");
    const style = getComputedStyle(part);
    const inside = part.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return Math.max(inside, parseFloat(place.style.minWidth) || 0);
  };

  const draw = async (place) => {
    const width = widthOf(place);
    let specification = data.specifications[Number(place.dataset.figure)];
    if (width < 600) specification = fitted(specification, width);
    if (isHidden(place) && specification.width === "container") specification = { ...specification, width };
    place.dataset.at = String(window.innerWidth);
    try {
      await window.vegaEmbed(place, specification, {
        actions: { export: { svg: true, png: false }, source: false, compiled: false, editor: false },
        ast: true,
        config: data.config,
        mode: "vega-lite",
        renderer: "svg",
        tooltip: { theme: "custom" },
      });
      place.dataset.drawn = "yes";
    } catch (error) {
      place.textContent = "This figure could not be drawn: " + error.message;
      console.error(error);
    }
  };

  // First what can be seen, then what is in closed parts; between two figures the page answers its reader.
  const drawAll = async () => {
    const places = [...document.querySelectorAll("[data-figure]")];
    for (const place of [...places.filter((p) => !isHidden(p)), ...places.filter(isHidden)]) {
      if (place.dataset.at === undefined) await draw(place);
      await new Promise((next) => setTimeout(next));
    }
    document.documentElement.dataset.ready = "yes";
  };

  const opened = (part) => {
    for (const place of part.querySelectorAll("[data-figure]")) {
      if (!isHidden(place) && place.dataset.at !== String(window.innerWidth)) draw(place);
    }
  };
  for (const part of document.querySelectorAll(".part")) {
    part.addEventListener("toggle", () => { if (part.open) opened(part); });
  }
  window.addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll(".part")) part.open = true;
  });

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
