"""Schema migrations (Alembic), one step per revision; forward only."""
