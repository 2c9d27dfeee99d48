"""Running of commands: processes, their environment and sandbox, and their output."""
