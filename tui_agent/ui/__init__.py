"""The full-screen front end: a fold over the events of the engine, and one bridge back to it."""
