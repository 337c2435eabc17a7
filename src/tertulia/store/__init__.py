"""Persistence layer: the database schema, its migrations, and one module per stored noun."""
