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

  const draw = async (place) => {
    const width = place.clientWidth || 600;
    const given = data.specifications[Number(place.dataset.figure)];
    const specification = width < 600 ? fitted(given, width) : given;
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

  const drawAll = async () => {
    for (const place of document.querySelectorAll("[data-figure]")) await draw(place);
    document.documentElement.dataset.ready = "yes";
  };

  // A figure inside a closed part has no width; it is drawn again, at its full width, when the part opens.
  for (const part of document.querySelectorAll(".part")) {
    part.addEventListener("toggle", () => { if (part.open) window.dispatchEvent(new Event("resize")); });
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
