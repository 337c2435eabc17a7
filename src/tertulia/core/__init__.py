"""Domain types and rules that all other rooms share; standard library only, no I/O."""
