"""One module per topic, with one function of the same name."""
