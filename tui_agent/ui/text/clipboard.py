"""Copies of text, with a message that says how much was copied."""

from typing import Any

from textual.app import App

from tui_agent.protocol.amounts import count_text


def copy_text(app: App[Any], text: str) -> None:
    """Copy a text and show the number of its lines."""
    app.copy_to_clipboard(text)
    app.notify(copied_notice(text), markup=False)


def copied_notice(text: str) -> str:
    """Return the message about a copy, such as `Copied 14 lines`."""
    return f"Copied {count_text(len(text.rstrip(chr(10)).split(chr(10))), 'line')}"
