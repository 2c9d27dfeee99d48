"""The type of commands, and the labels of keys."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

Where: TypeAlias = Literal[
    "app",
    "chat",
    "composer",
    "queue",
    "panel",
    "interrupt",
    "conversation",
    "search",
    "approval",
    "questions",
    "server",
    "parts",
    "detail",
    "list",
    "items",
    "servers",
    "rewind",
    "diff",
    "hunks",
    "findings",
    "source",
    "permissions",
    "settings",
    "jobs",
    "tasks",
    "report",
    "timeline",
    "fleet",
    "picker",
    "sessions",
    "welcome",
    "confirm",
    "trust",
    "player",
]
"""The part of the screen that a key belongs to; `app` is all of it. The id of a command begins with it."""


PAGE_OPENERS: Mapping[str, str] = {
    "diff": "chat.diff",
    "rewind": "chat.rewind",
    "sessions": "chat.resume",
    "permissions": "chat.permissions",
    "settings": "chat.settings",
    "jobs": "chat.jobs",
    "tasks": "chat.tasks",
    "servers": "chat.mcp",
    "welcome": "chat.resume",
    "player": "chat.replay",
}
"""Pages that open only where a command does, by the part of the screen that their keys belong to."""

Need: TypeAlias = Literal["", "session", "sessions"]
"""Part of the host without which a command does nothing: the open session whole, or the other sessions."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the user."""

    id: str
    """Unique id, such as `composer.submit`; also the id of its binding in a keymap."""
    keys: tuple[str, ...]
    """Textual key names; the first one is shown. Empty for a command without a key."""
    text: str
    """One or two words for hints."""
    help: str
    """One line for the help page and the palette."""
    action: str = ""
    """Textual action; empty if it is the last part of the id."""
    palette: bool = False
    """True if the command palette lists it."""
    slash: str | None = None
    """Name of its `/` command, without the slash."""
    argument: str = ""
    """Argument of the `/` command for the help page, such as `[NAME]`; without `slash`, the input itself."""
    priority: bool = False
    """True if the key takes precedence over the focused widget."""
    needs: Need = ""

    @property
    def where(self) -> Where:
        """The part of the screen in which its keys act."""
        return cast(Where, self.id.partition(".")[0])

    @property
    def action_name(self) -> str:
        """The Textual action that its keys run."""
        return self.action or self.id.rpartition(".")[2]

    @property
    def key_text(self) -> str:
        """Label of its first key, such as `ctrl+y`; empty if it has none."""
        return key_label(self.keys[0]) if self.keys else ""


_GIVEN = re.compile(r"(?P<keys>[^/!@]*)(?:/(?P<slash>\S+) ?)?(?P<argument>.*)")
"""Names of keys, the `/` command, and its argument."""


def row(
    command_id: str,
    given: str,
    text: str,
    help: str,  # noqa: A002
    *,
    action: str = "",
    palette: bool | None = None,
    priority: bool = False,
    needs: Need = "",
) -> Command:
    """Return a command as a row of a table.

    Args:
        given: how the user gives it: names of keys, the `/` command with its argument, or other input such as
            `!COMMAND`.
        palette: True if the command palette lists it; None: it does if there is a `/` command.
    """
    keys, slash, argument = _GIVEN.findall(given)[0]
    return Command(
        command_id,
        tuple(keys.split()),
        text,
        help,
        action=action,
        palette=bool(slash) if palette is None else palette,
        slash=slash or None,
        argument=argument,
        priority=priority,
        needs=needs,
    )


def key_label(key: str) -> str:
    """Return the label of a Textual key name: `escape` is `esc`, `up` is an arrow."""
    return "+".join(_KEY_LABELS.get(part, part) for part in key.split("+"))


_KEY_LABELS = {
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "underscore": "_",
    "slash": "/",
    "question_mark": "?",
    "comma": ",",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "full_stop": ".",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
}
