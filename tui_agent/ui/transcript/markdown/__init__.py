"""Markdown as styled rows, also while it streams."""
