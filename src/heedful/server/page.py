"""The page to try a model out. It works offline: no script, font or style comes from elsewhere."""

from __future__ import annotations

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Try the model</title>
<style>
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
textarea, input { width: 100%; box-sizing: border-box; font: inherit; padding: .5rem; }
label { display: block; margin: 1rem 0 .25rem; }
button { font: inherit; margin: 1rem 0; padding: .4rem 1.2rem; }
table { border-collapse: collapse; width: 100%; }
td { padding: .2rem .5rem; }
td:nth-child(2) { text-align: right; font-variant-numeric: tabular-nums; width: 5rem; }
meter { width: 100%; }
#error { color: #b3261e; }
</style>
</head>
<body>
<h1 id="name">The model</h1>
<p id="about"></p>
<form id="form">
  <label for="text">Text</label>
  <textarea id="text" rows="4" required></textarea>
  <div id="second" hidden>
    <label for="pair">Second text</label>
    <textarea id="pair" rows="4"></textarea>
  </div>
  <button>Label it</button>
</form>
<p id="error" role="alert"></p>
<table id="answer" aria-live="polite"></table>
<script>
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const headers = token ? { Authorization: "Bearer " + token } : {};
const show = (id, text) => { document.getElementById(id).textContent = text; };

async function ask(path, options) {
  const response = await fetch(path, options);
  const found = await response.json();
  if (!response.ok) throw new Error(found.error.message);
  return found;
}

ask("model", { headers }).then((model) => {
  show("name", model.name);
  document.title = model.name;
  const labels = model.labels;
  const shown = labels.slice(0, 12).join(", ") + (labels.length > 12 ? ", ..." : "");
  show("about", labels.length ? "Labels: " + shown : "");
  document.getElementById("second").hidden = !model.reads_pairs;
}).catch((error) => show("error", error.message));

document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = { text: document.getElementById("text").value };
  if (!document.getElementById("second").hidden) body.pair = document.getElementById("pair").value;
  const table = document.getElementById("answer");
  table.replaceChildren();
  show("error", "");
  try {
    const answer = await ask("predict", {
      method: "POST", body: JSON.stringify(body), headers: { ...headers, "Content-Type": "application/json" },
    });
    if (answer.value !== undefined) table.insertRow().insertCell().textContent = answer.value.toPrecision(6);
    if (answer.labels) table.createCaption().textContent = "Labels: " + (answer.labels.join(", ") || "none");
    const rows = Object.entries(answer.probabilities || {}).sort((a, b) => b[1] - a[1]).slice(0, 20);
    for (const [label, share] of rows) {
      const row = table.insertRow();
      row.insertCell().textContent = label;
      row.insertCell().textContent = share.toFixed(3);
      const meter = document.createElement("meter");
      meter.value = share;
      row.insertCell().append(meter);
    }
  } catch (error) {
    show("error", error.message);
  }
});
</script>
</body>
</html>
"""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
