"""A turn in motion: turns, asks, the writer, live fan-out and background jobs."""
