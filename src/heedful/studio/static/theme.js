// Before anything is drawn: the theme that was chosen with the switch, if any.
(() => {
  try {
    const theme = localStorage.getItem("heedful-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // A browser without storage follows the system.
  }
})();
