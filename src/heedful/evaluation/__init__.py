"""Metrics, intervals, paired tests, baselines, calibration, generation and checks."""
