"""What must be true of every mechanism, method and run, importable without pytest; `heedful selftest`."""
