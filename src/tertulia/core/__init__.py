"""What things are: the types and rules every other room speaks in; standard library only, no I/O."""
