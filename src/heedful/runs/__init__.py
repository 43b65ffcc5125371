"""The run directory: schemas, atomic reading and writing. Standard library and numpy only."""
