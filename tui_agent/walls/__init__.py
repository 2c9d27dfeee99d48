"""Walls around programs: what builds them, whether they work here, and what a confined program sees."""
