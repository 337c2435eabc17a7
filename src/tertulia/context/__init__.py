"""What a model is shown: material in, prompt and receipt out."""
