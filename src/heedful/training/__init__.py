"""The one loop; optimisers, schedules, precision, checkpoints and exact resume."""
