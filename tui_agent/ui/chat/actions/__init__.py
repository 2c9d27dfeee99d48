"""Actions of `/` commands and of entries in the command palette, by subject."""
