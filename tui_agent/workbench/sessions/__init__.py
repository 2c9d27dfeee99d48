"""Saved sessions: resuming one, its prompts and files, its model."""
