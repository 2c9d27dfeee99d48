"""Paths: resolution, protected and private places, verdicts on reads and writes."""
