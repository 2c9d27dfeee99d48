"""Every key and every command on one page, made from the one table."""

from textwrap import wrap

from textual.content import Content

from tui_agent.ui.base.commands import COMMANDS, Command, Where, key_label, slash_commands

_TITLES: dict[Where, str] = {
    "composer": "While typing",
    "chat": "At any time",
    "queue": "Waiting messages",
    "interrupt": "After esc",
    "panel": "In the tool panel",
    "conversation": "In the conversation",
    "search": "While searching",
    "approval": "When a call needs you",
    "questions": "When several calls need you",
    "detail": "On a page about a call",
    "rewind": "When going back",
    "player": "In a recording",
    "everywhere": "Everywhere",
}

_COLUMN = 24
"""Cells before the help texts."""


def help_text(width: int) -> Content:
    """Everything the table says, part by part, wrapped to a width."""
    parts = [_heading("Commands")]
    parts += [_row(f"/{entry.slash} {entry.argument}", entry, width) for entry in slash_commands()]
    parts += [_row(entry.argument, entry, width) for entry in COMMANDS if entry.argument and not entry.slash]
    for where, title in _TITLES.items():
        entries = [entry for entry in COMMANDS if entry.where == where and entry.keys]
        parts += [Content(""), _heading(title), *[_row(_keys(entry), entry, width) for entry in entries]]
    return Content("\n").join(parts)


def _heading(title: str) -> Content:
    return Content.styled(title, "$primary bold")


def _row(name: str, entry: Command, width: int) -> Content:
    """Name and help, the help in a column of its own."""
    lines = wrap(entry.help, max(20, width - _COLUMN)) or [""]
    text = f"\n{' ' * _COLUMN}".join(lines)
    return Content.assemble((f"  {name:<{_COLUMN - 3}} ", "$text bold"), (text, "$text-muted"))


def _keys(entry: Command) -> str:
    return ", ".join(key_label(key) for key in entry.keys)
