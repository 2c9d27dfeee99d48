"""What fills the terminal: the chat, the approval dialog, the details of a call."""
