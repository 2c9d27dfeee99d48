"""Tool panel, timeline, and the detail page of one call."""
