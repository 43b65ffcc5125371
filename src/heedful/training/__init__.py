"""Training: train.py is a run from beginning to end; the loop, checkpoints, exact resume and trackers."""
