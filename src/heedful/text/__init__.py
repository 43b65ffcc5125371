"""Tokenizers: train, load, encode one text or a pair."""
