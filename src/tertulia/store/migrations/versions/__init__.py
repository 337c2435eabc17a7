"""Migration steps: one file each, named by its revision."""
