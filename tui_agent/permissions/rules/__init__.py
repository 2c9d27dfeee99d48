"""Rules: their notation, their verdicts, and those that an approval may store."""
