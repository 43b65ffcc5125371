"""The options of every command: one frozen dataclass each, one typed parser, one writer of command lines.

The command line, TOML files and Python read the same dataclasses. Nothing here imports torch or looks a name
up in a registry, so that `--help` is quick.
"""
