"""Providers: the model catalogue, the clients of all model providers, and the local models."""
