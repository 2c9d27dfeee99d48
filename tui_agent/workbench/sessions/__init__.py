"""Saved sessions: resuming one, its prompts, and its recordings."""
