"""The studio: run directories, models and attention as pages in a browser."""
