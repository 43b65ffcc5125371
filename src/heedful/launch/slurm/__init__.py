"""Running commands as Slurm batch jobs: the script, its submission, the job's own process, and its state."""
