"""Tools: the functions that a model can call, one file each, and the sandbox."""
