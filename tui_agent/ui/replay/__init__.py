"""Replays of sessions."""
