"""Full-text and vector search over a project's files and messages: extract text, chunk it, embed it, search
it."""
