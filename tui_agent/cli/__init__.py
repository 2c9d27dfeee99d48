"""Reads arguments, sets up the process and starts a front end; the only room that knows all others."""
