"""Sources (files, Hub, generated world), splits, corruption and batches."""
