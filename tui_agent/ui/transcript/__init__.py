"""Conversation pane: parts, search and scrolling."""
