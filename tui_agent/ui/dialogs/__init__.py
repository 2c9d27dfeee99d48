"""Dialogs and pages over the chat: help, information, trust, rewind."""
