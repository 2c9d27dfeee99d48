"""The pages of `docs/` say what the code does."""
