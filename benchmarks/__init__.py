"""Side by side with the tools people use today: a file a benchmark, `python -m benchmarks` runs all."""
