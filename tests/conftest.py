"""Fixtures for all tests."""

pytest_plugins = ["tests.house_fixtures", "tests.store_fixtures"]
