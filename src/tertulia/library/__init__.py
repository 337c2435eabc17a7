"""Search over a project's files and messages: extract text, chunk it, embed it, find it."""
