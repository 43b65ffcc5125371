"""The commands as Python functions: the same options and defaults, results with attributes."""
