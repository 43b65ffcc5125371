"""`heedful tokenizer`: train, compare and inspect tokenizers."""

from __future__ import annotations

from cyclopts import App

from heedful.cli import tokenizer_compare, tokenizer_show, tokenizer_train

app = App(name="tokenizer", help="Train, compare and inspect tokenizers.")
app.command(tokenizer_train.command, name="train")
app.command(tokenizer_compare.command, name="compare")
app.command(tokenizer_show.command, name="show")
