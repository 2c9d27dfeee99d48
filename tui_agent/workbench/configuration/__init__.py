"""Settings in force: their layers, their changes while the program runs, and the trust in a project."""
