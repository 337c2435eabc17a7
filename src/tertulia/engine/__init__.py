"""A turn in motion: turns, asks, the tool loop, the writer, live fan-out."""
