"""One module a topic, with one function of the same name."""
