"""How several voices answer: one short function per mode, talking to a table."""
