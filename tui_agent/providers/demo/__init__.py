"""The offline model: a scripted policy behind a real Messages API on the loopback interface (interface.md §5)."""
