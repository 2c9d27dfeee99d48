"""State that widgets draw: folds over events."""
