"""Validation of the engine's events after every test."""

from tests.support.validating_bus import judged as judged
