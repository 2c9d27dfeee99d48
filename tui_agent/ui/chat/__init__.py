"""The main screen: its layout, its input, and its commands."""
