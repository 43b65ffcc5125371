"""Where a command runs: here, or as a batch job on a Slurm cluster. Nothing here imports torch."""
