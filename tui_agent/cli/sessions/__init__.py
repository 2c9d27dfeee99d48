"""Sessions of the app, and recordings."""
