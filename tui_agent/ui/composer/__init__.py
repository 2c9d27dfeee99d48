"""The text input: history, folded pastes, slash commands and queued messages."""
