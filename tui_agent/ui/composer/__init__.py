"""The text input: history, collapsed pastes, slash commands and queued messages."""
