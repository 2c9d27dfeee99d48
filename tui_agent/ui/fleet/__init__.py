"""The screen of a fleet: its units, their workers, and the conversation of each."""
