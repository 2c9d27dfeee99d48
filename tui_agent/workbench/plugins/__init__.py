"""Plugins: tools, providers, hooks and themes of installed packages."""
