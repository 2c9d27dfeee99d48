"""Tests of the files that define skills, commands and sub-agents."""
