"""Fixtures for all tests, and the Hypothesis profiles."""

import os

from hypothesis import HealthCheck, settings

SLOW = [HealthCheck.too_slow]
settings.register_profile("quick", max_examples=30, deadline=None, suppress_health_check=SLOW)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

pytest_plugins = ["tests.app_fixtures", "tests.store_fixtures"]
