"""`heedful tokenizer`: train, compare and look into tokenizers."""

from __future__ import annotations

from cyclopts import App

app = App(name="tokenizer", help="Train, compare and look into tokenizers.")
app.command("heedful.cli.tokenizer_train:train", name="train")
app.command("heedful.cli.tokenizer_compare:compare", name="compare")
app.command("heedful.cli.tokenizer_show:show", name="show")
