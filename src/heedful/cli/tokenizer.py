"""`heedful tokenizer`: train, compare and inspect tokenizers."""

from __future__ import annotations

from cyclopts import App

from heedful.cli.tokenizer_compare import compare
from heedful.cli.tokenizer_show import show
from heedful.cli.tokenizer_train import train

app = App(name="tokenizer", help="Train, compare and inspect tokenizers.")
app.command(train)
app.command(compare)
app.command(show)
