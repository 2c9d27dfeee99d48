"""Keys and commands, from which bindings, hints, the command palette and the help page are made.

The table is `command_table.py`. No other module compares or spells key names, so the keys that
are shown are the keys that work.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from textual.binding import Binding

from .command_table import COMMANDS
from .command_type import Command, Where

FIRST_KEYS = (
    "composer.submit",
    "composer.new_line",
    "composer.follow_up",
    "chat.send_now",
    "chat.interrupt",
    "app.escalate",
    "chat.cycle_mode",
    "chat.next_approval",
    "approval.approve_once",
    "approval.deny",
    "composer.earlier",
    "composer.search_prompts",
    "chat.search",
    "chat.page_up",
    "chat.scroll_end",
    "chat.toggle_panel",
    "chat.background",
    "app.command_palette",
    "chat.help",
    "app.quit",
)
"""Ids of the commands that one needs first."""

_table: dict[str, Command] = {entry.id: entry for entry in COMMANDS}
"""Every command with the keys in force, by id."""


def use_keys(keys: Mapping[str, tuple[str, ...]]) -> None:
    """Replace the keys of some commands, by id, and restore the default keys of all others; ignore unknown ids."""
    own = {entry.id: replace(entry, keys=keys[entry.id]) for entry in COMMANDS if entry.id in keys}
    _table.update((entry.id, own.get(entry.id, entry)) for entry in COMMANDS)


def has_own_keys() -> bool:
    """Return True if a command has other keys than its default ones."""
    return all_commands() != COMMANDS


def all_commands() -> tuple[Command, ...]:
    """Return every command with the keys in force, in table order."""
    return tuple(_table.values())


def commands_for(where: Where) -> tuple[Command, ...]:
    """Return the commands of one part of the screen with the keys in force, in table order."""
    return tuple(command for command in _table.values() if command.where == where)


def bindings_for(where: Where, commands: Iterable[Command] = COMMANDS) -> list[Binding]:
    """Return Textual bindings for the default keys of one part of the screen; the app replaces them."""
    return [
        Binding(
            ",".join(command.keys),
            command.action_name,
            command.text,
            id=command.id,
            priority=command.priority,
            tooltip=command.help,
        )
        for command in commands
        if command.where == where and command.keys
    ]


def first_keys() -> tuple[Command, ...]:
    """Return the commands of `FIRST_KEYS` that have a key, in the order of help and hints."""
    return tuple(found for name in FIRST_KEYS if (found := _table[name]).keys)


def command(command_id: str) -> Command:
    """Return the command with this id, with the keys in force.

    Raises:
        KeyError: no command has this id.
    """
    return _table[command_id]


def hint(command_id: str, text: str | None = None) -> str:
    """Return key and text for a hint line, such as `esc interrupt`; only the text if the command has no key.

    Args:
        text: replaces the command's own.

    Raises:
        KeyError: no command has this id.
    """
    found = command(command_id)
    return f"{found.key_text} {text or found.text}".lstrip()


def slash_commands() -> tuple[Command, ...]:
    """Return the `/` commands, sorted by name."""
    return tuple(sorted((entry for entry in _table.values() if entry.slash), key=lambda entry: entry.slash or ""))
