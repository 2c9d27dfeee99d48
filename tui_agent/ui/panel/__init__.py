"""The tool panel, the timeline and the page of one call."""
