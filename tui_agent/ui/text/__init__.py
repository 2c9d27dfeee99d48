"""Text for the terminal: sanitising, styled rows, diffs, highlighting."""
