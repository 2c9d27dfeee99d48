"""The process of the program: its start, its limits, its log and its end."""
