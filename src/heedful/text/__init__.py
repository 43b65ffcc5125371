"""Tokenizers: train, load, encode one text or a pair."""

from heedful.text.loading import load
from heedful.text.tokenizer import Encoding, Tokenizer
from heedful.text.training import KINDS, MASK_KINDS, no_mask, train

__all__ = ["KINDS", "MASK_KINDS", "Encoding", "Tokenizer", "load", "no_mask", "train"]
