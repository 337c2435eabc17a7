"""What a model is shown: pure; material in, prompt and receipt out."""
