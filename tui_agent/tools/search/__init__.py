"""Finding files and text: listings, patterns, ignore rules, and the search engines."""
