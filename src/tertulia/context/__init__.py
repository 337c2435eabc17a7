"""Prompt assembly, as pure functions: prompt inputs in, prompt and receipt out."""
