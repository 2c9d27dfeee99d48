"""The help page: every command and key of the table of commands."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap

from textual.content import Content

from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.ui.base.command_type import Command, Where, key_label
from tui_agent.ui.base.commands import all_commands, command, first_keys, slash_commands
from tui_agent.ui.text.sanitiser import visible

TITLES: dict[Where, str] = {
    "composer": "While typing",
    "chat": "At any time",
    "queue": "Queued messages",
    "interrupt": "After {interrupt}",
    "panel": "In the tool panel",
    "conversation": "In the conversation",
    "search": "While searching",
    "approval": "When a call needs your answer",
    "questions": "When several calls need your answer",
    "parts": "When you choose parts of a change",
    "detail": "On a page about a call",
    "list": "On every page with a list",
    "rewind": "While rewinding",
    "diff": "On the page of changes",
    "hunks": "On the changes of a file",
    "findings": "On the findings of a review",
    "source": "On the code of a finding",
    "sessions": "In the list of sessions",
    "permissions": "On the permissions page",
    "settings": "On the page of settings",
    "jobs": "On the page of background commands",
    "tasks": "In the list of tasks",
    "servers": "On the page of tool servers",
    "welcome": "On the first page",
    "report": "On the report of a run",
    "timeline": "On the timeline page",
    "player": "In a replay",
    "app": "Everywhere",
}
"""Headings of the parts of the screen, in the order of the page."""

_FLEET_TITLES: dict[Where, str] = {
    "fleet": "In the list of units",
    "timeline": "On the timeline of the workers",
    **{where: TITLES[where] for where in ("approval", "questions", "app")},
}
"""Parts of the screen of a fleet. A unit's conversation has a help page of its own."""

_COLUMN, _NARROW_COLUMN = 24, 15
"""Cells in front of the help texts."""
_WIDE = 70
"""Columns from which names have a wide column."""


def help_text(
    width: int, own: Sequence[PromptCommand] = (), offers: Callable[[Command], bool] = lambda _: True
) -> Content:
    """Return the page for a width, with the keys that one needs first at the top; `own` are the commands of files."""
    parts = [_heading("The keys you need first")]
    parts += [_row(_keys(entry), entry, width) for entry in first_keys() if offers(entry)]
    parts += [Content(""), _heading("Commands")]
    parts += [_row(f"/{entry.slash} {entry.argument}", entry, width) for entry in slash_commands() if offers(entry)]
    inputs = [entry for entry in all_commands() if entry.argument and not entry.slash and offers(entry)]
    parts += [_row(entry.argument, entry, width) for entry in inputs]
    if own:
        parts += [Content(""), _heading("Your commands and skills")]
        parts += [_row(visible(f"/{entry.slash} {entry.argument}"), entry, width) for entry in own]
    return Content("\n").join([*parts, *_key_rows(TITLES, width, offers)])


def fleet_help_text(width: int) -> Content:
    """Return the page of the screen of a fleet, wrapped to a width."""
    return Content("\n").join(_key_rows(_FLEET_TITLES, width)[1:])


def _key_rows(
    titles: Mapping[Where, str], width: int, offers: Callable[[Command], bool] = lambda _: True
) -> list[Content]:
    rows: list[Content] = []
    for where, title in titles.items():
        entries = [entry for entry in all_commands() if entry.where == where and entry.keys and offers(entry)]
        if not entries:
            continue
        heading = _heading(title.format(interrupt=command("chat.interrupt").key_text))
        rows += [Content(""), heading, *[_row(_keys(entry), entry, width) for entry in entries]]
    return rows


def _heading(title: str) -> Content:
    return Content.styled(title, "$primary bold")


def _row(name: str, entry: Command | PromptCommand, width: int) -> Content:
    column = _COLUMN if width >= _WIDE else _NARROW_COLUMN
    lines = wrap(visible(entry.help), max(20, width - column)) or [""]
    if len(name) > column - 3:
        lines.insert(0, "")
    text = f"\n{' ' * column}".join(lines)
    return Content.assemble((f"  {name:<{column - 3}} ", "$text bold"), (text, "$text-muted"))


def _keys(entry: Command) -> str:
    return ", ".join(key_label(key) for key in entry.keys)
