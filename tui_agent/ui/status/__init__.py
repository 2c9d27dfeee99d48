"""Title bar, status line and notices."""
