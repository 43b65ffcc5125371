"""Using a trained model: predictions for texts and files, text generation, and export."""
