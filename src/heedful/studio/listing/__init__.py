"""The list of runs and studies below a folder, kept up to date by reading only what has changed."""
