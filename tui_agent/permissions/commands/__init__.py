"""Facts about commands, and what one command reads, changes and runs by its words."""
