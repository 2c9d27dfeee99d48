"""The player for recordings."""
