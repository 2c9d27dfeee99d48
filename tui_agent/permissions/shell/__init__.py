"""Shell text: its syntax, words and expansions. Knows no command, file or rule."""
