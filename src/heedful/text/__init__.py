"""Tokenizers: train, load, encode one text or a pair."""

from heedful.text.loading import load
from heedful.text.tokenizer import Encoding, Tokenizer
from heedful.text.training import KINDS, MASK_KINDS, missing_mask_error, train

__all__ = ["KINDS", "MASK_KINDS", "Encoding", "Tokenizer", "load", "missing_mask_error", "train"]
