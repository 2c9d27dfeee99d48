"""Layers in which commands run before their changes are decided: making, reading, sorting, keeping, cleaning up."""
