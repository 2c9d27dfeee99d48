"""The order of calls: conflict order, waves, and the points where steering is polled."""
