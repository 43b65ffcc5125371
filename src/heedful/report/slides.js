(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const slides = [...document.querySelectorAll(".slide")];
  let current = 0;

  const show = (index) => {
    current = Math.max(0, Math.min(slides.length - 1, index));
    slides.forEach((slide, i) => slide.classList.toggle("on", i === current));
    document.getElementById("count").textContent = current + 1 + " / " + slides.length;
    history.replaceState(null, "", "#" + (current + 1));
  };

  const moves = {
    ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, Enter: 1,
    ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Backspace: -1,
    Home: -Infinity, End: Infinity,
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("select, input")) return;
    const onButton = event.target.closest("button") !== null && (event.key === " " || event.key === "Enter");
    if (event.key in moves && !onButton) {
      show(current + (event.key === " " && event.shiftKey ? -1 : moves[event.key]));
    } else if (event.key === "f" || event.key === "F") {
      if (document.fullscreenElement) document.exitFullscreen();
      else document.documentElement.requestFullscreen().catch(() => {});
    } else if (event.key === "d" || event.key === "D") {
      const root = document.documentElement.dataset;
      root.mode = root.mode === "dark" ? "light" : "dark";
    } else return;
    event.preventDefault();
  });
  document.getElementById("back").addEventListener("click", () => show(current - 1));
  document.getElementById("next").addEventListener("click", () => show(current + 1));
  window.addEventListener("hashchange", () => show(Number(location.hash.slice(1)) - 1 || 0));

  let touched = null;
  document.addEventListener("touchstart", (event) => { touched = event.changedTouches[0].clientX; }, { passive: true });
  document.addEventListener("touchend", (event) => {
    const moved = event.changedTouches[0].clientX - touched;
    if (Math.abs(moved) > 60) show(current + (moved < 0 ? 1 : -1));
  }, { passive: true });

  // A figure has the size that it has in a file; its picture is enlarged to fill the screen, with its letters.
  const draw = async (element) => {
    try {
      const specification = data.specifications[Number(element.dataset.figure)];
      const options = { actions: false, ast: true, config: data.config, mode: "vega-lite", renderer: "svg" };
      await window.vegaEmbed(element, specification, { ...options, tooltip: { theme: "custom" } });
      element.dataset.drawn = "yes";
    } catch (error) {
      element.textContent = "This figure could not be drawn: " + error.message;
      console.error(error);
    }
  };

  const start = async () => {
    document.documentElement.classList.add("ready");
    show(Number(location.hash.slice(1)) - 1 || 0);
    for (const element of document.querySelectorAll("[data-figure]")) await draw(element);
    document.documentElement.dataset.ready = "yes";
  };
  start();
})();
