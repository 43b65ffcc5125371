"""How q, k and v become an output: one file a mechanism, one `Mask`, one registry."""
