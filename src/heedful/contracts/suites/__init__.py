"""The suites: one file per thing that people write by hand."""
