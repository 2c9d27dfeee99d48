"""Modules that every part of the screen uses: commands, error boundary, terminal environment."""
