"""Shell commands: their words, wrappers around them, and the short list of those that only read."""
