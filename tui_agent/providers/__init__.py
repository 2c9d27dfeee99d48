"""Models: the Messages API through its SDK, a scripted stand-in for tests, and the offline demo."""
