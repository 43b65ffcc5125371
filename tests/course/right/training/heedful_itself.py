from heedful.training.schedules import factor


def lr_lambda(step, total_steps, warmup_steps):
    """The package's own cosine."""
    return factor("cosine", step, total_steps, warmup_steps)
