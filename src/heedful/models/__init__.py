"""Blocks, embeddings, positions and heads; `Encoder`, `Decoder`, `EncoderDecoder`; presets."""
