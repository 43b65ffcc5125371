"""Builders of a training run: they turn options into the parts that `heedful.training.train` runs."""
