"""The conversation pane: parts, search and scrolling."""
