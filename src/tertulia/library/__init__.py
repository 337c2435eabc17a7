"""What can be looked up: extract, chunk, embed, search, memory."""
