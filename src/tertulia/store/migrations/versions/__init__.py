"""One file per step, named by its revision."""
