"""Reads arguments and wires everything together; the only room that knows all others."""
