"""Heedful: from how attention works to a Transformer language model adapted to your problem.

Importing this package is quick: torch is imported only when something needs it.
"""

__version__ = "0.1.0"
