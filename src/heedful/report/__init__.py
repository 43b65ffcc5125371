"""Charts and pages, made from run directories and plain numbers alone. Never imports torch."""
