"""The user's own keys: what `[keys]` in the settings asks for, checked against the table of commands.

An entry that cannot be applied keeps the default keys of its command. Two commands may share a key only if they never
act at the same time, or if they share one by default: `esc` closes suggestions before it interrupts.
"""

import difflib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from textual.keys import KEY_NAME_REPLACEMENTS, Keys

from .command_type import Command, Where
from .commands import COMMANDS

KeyNames: TypeAlias = tuple[str, ...]

_TYPING: tuple[Where, ...] = ("app", "chat", "composer", "queue", "panel", "conversation", "search", "picker")
"""Places where printable keys are text."""
_EDITING = ("backspace", "left", "right")
"""Keys of the composer that no command may take from it."""
_LIST_PAGES: tuple[Where, ...] = (
    "items",
    "servers",
    "rewind",
    "diff",
    "hunks",
    "findings",
    "source",
    "sessions",
    "permissions",
    "settings",
    "jobs",
    "tasks",
    "timeline",
)
"""Pages that also have the keys of every list."""
_TOGETHER: tuple[tuple[Where, ...], ...] = (
    ("app", "chat", "composer", "queue"),
    ("app", "chat", "interrupt"),
    ("app", "chat", "panel"),
    ("app", "chat", "conversation"),
    ("app", "chat", "search"),
    *(("app", "list", where) for where in _LIST_PAGES),
)
"""Places whose keys act at the same time. Everywhere else, only the keys of one place and those of `app` do."""
_NEEDED = ("composer.submit", "app.escalate")
"""Commands that must keep a key."""

_ALIASES = {
    "esc": "escape",
    "return": "enter",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "pgdown": "pagedown",
    "del": "delete",
    "ins": "insert",
    "control": "ctrl",
    "option": "alt",
    "↑": "up",
    "↓": "down",
    "←": "left",
    "→": "right",
    " ": "space",
}
_MODIFIERS = ("alt", "ctrl", "hyper", "meta", "shift", "super")
# Textual has no public names for keys that only the keyboard protocol of newer terminals reports.
_NAMED = {
    *(key.value for key in Keys if key.value.isalnum()),
    *("space", "caps_lock", "num_lock", "scroll_lock", "print_screen", "pause", "menu", "kp_begin"),
    *("add", "subtract", "multiply", "divide", "decimal", "equal", "separator"),
    *("lower_volume", "raise_volume", "mute_volume", "media_track_next", "media_track_previous", "media_fast_forward"),
    *("media_play", "media_pause", "media_play_pause", "media_stop", "media_record", "media_reverse", "media_rewind"),
    *(f"f{number}" for number in range(25, 36)),
}
"""Names of keys other than characters."""
_SAME_BYTES = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+left_square_bracket": "escape"}
"""Keys that terminals send as another one."""


@dataclass(frozen=True, slots=True)
class KeyProblem:
    """An entry of `[keys]` that is not applied."""

    command_id: str
    text: str
    """Reason."""


@dataclass(frozen=True, slots=True)
class CheckedKeys:
    """The entries of `[keys]` that apply, and the others."""

    keys: Mapping[str, KeyNames]
    problems: tuple[KeyProblem, ...]


def check_keys(wanted: Mapping[str, Sequence[str]]) -> CheckedKeys:
    """Return the keys that replace the default ones, and the entries that cannot be applied."""
    by_id = {entry.id: entry for entry in COMMANDS}
    keys: dict[str, KeyNames] = {}
    problems: list[KeyProblem] = []
    for command_id, names in wanted.items():
        entry = by_id.get(command_id)
        read = _unknown_command(command_id, by_id) if entry is None else _read_keys(entry, names)
        if isinstance(read, str):
            problems.append(KeyProblem(command_id, read))
        else:
            keys[command_id] = read
    # Each round may uncover a conflict with a default key that comes back.
    while conflicts := dict(_conflicts(keys)):
        for command_id, text in conflicts.items():
            problems.append(KeyProblem(command_id, text))
            del keys[command_id]
    return CheckedKeys(keys, tuple(problems))


def key_name(text: str) -> str | None:
    """Return Textual's name of a key, such as `ctrl+k` or `slash`; None if it has none."""
    text = _ALIASES.get(text, text)
    parts = text.split("+") if text != "+" and not text.endswith("++") else [*text[:-1].split("+")[:-1], "+"]
    *modifiers, last = (_ALIASES.get(part.lower(), part) for part in parts)
    modifiers = [_ALIASES.get(name, name).lower() for name in modifiers]
    if not set(modifiers) <= set(_MODIFIERS) or len(set(modifiers)) < len(modifiers):
        return None
    if len(last) == 1 and last.isprintable():
        shifted = last.isupper() and bool(modifiers)
        last = _character_name(last.lower() if shifted else last)
    elif last.lower() in _NAMED:
        last = last.lower()
    elif last not in _PUNCTUATION:
        return None
    if modifiers == ["shift"] and len(last) == 1:
        return last.upper()
    return "+".join((*sorted(modifiers), last))


def _character_name(character: str) -> str:
    """Return Textual's name of a printable character: a letter or digit is its own."""
    if character.isalnum():
        return character
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    return KEY_NAME_REPLACEMENTS.get(name, name)


_PUNCTUATION = frozenset(_character_name(chr(code)) for code in range(0x21, 0x7F) if not chr(code).isalnum())
"""Textual's names of punctuation, such as `slash`."""


def _is_printable(key: str) -> bool:
    return len(key) == 1 or key == "space" or key in _PUNCTUATION


def _unknown_command(command_id: str, known: Mapping[str, Command]) -> str:
    near = difflib.get_close_matches(command_id, known, n=1)
    return "no command has this name" + (f"; did you mean `{near[0]}`?" if near else "")


def _read_keys(entry: Command, names: Sequence[str]) -> KeyNames | str:
    """Return the keys of an entry, or what is wrong with them."""
    if not entry.keys:
        return "this command is not bound to a key"
    if not names and entry.id in _NEEDED:
        return "this command needs a key"
    keys: list[str] = []
    for name in names:
        key = key_name(name)
        if key is None:
            near = difflib.get_close_matches(name, _examples(), n=1)
            return f'no key is called "{name}"' + (f'; did you mean "{near[0]}"?' if near else "")
        if key in _SAME_BYTES:
            return f'terminals send "{name}" as {_SAME_BYTES[key]}'
        if entry.where in _TYPING and (_is_printable(key) or key in _EDITING):
            return f'"{name}" types or edits text here; add ctrl or alt, or use a function key'
        keys.append(key)
    return tuple(dict.fromkeys(keys))


def _examples() -> list[str]:
    """Return names to suggest for a misspelt one."""
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    plain = sorted(name for name in _NAMED if not name.startswith(("media", "left_", "right_")))
    return [*plain, *(f"{modifier}+{last}" for modifier in ("ctrl", "alt", "shift") for last in (*letters, *plain))]


def _conflicts(keys: Mapping[str, KeyNames]) -> Iterator[tuple[str, str]]:
    """Yield the replaced commands that share a key with another command, each with what is wrong."""
    for entry in COMMANDS:
        for other in COMMANDS:
            if entry.id not in keys or entry is other or not _act_together(entry, other):
                continue
            if set(entry.keys) & set(other.keys):
                continue
            shared = set(keys[entry.id]) & set(keys.get(other.id, other.keys))
            if shared:
                yield entry.id, f'"{min(shared)}" is already the key of `{other.id}` ({other.text})'


def _act_together(one: Command, other: Command) -> bool:
    if one.where == other.where:
        return True
    places = {one.where, other.where}
    chat = {place for group in _TOGETHER for place in group}
    return any(places <= set(group) for group in _TOGETHER) or ("app" in places and not places <= chat)
