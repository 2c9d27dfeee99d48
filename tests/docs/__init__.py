"""Tests that the pages of `docs/` match the code."""
