"""Tokenizers: train, load, encode one text or a pair."""

from heedful.text.loading import load
from heedful.text.tokenizer import Encoding, Tokenizer
from heedful.text.training import KINDS, train

__all__ = ["KINDS", "Encoding", "Tokenizer", "load", "train"]
