"""Linear models of texts: a logistic regression on words, on an encoder's states, or on both."""
