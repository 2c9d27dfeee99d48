"""Teaches the key parser what terminals send for Alt+Enter and its kin.

Without the kitty protocol Alt+Enter arrives as ESC CR, which Textual reads as a plain Enter: a follow-up would be sent
as steering (https://github.com/Textualize/textual/issues/6378). With xterm's modifyOtherKeys, and in tmux with
extended-keys, it arrives as `CSI 27;3;13~`, which Textual names by its control character and without the modifier.
"""

from typing import cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.events import Key

_ALT_ENTER_MARK = "\uf00d"
"""Stands for ESC CR between the parser, which can only be told single characters, and `with_normalised_name`."""

_CONTROL_NAMES = {"\r": "enter", "\t": "tab", "\x1b": "escape", "\x7f": "backspace"}
_WHOLE_NAMES = {_ALT_ENTER_MARK: "alt+enter", "\r": "alt+enter"}
"""A bare control character is one whose Alt the parser dropped: unmodified keys are never reported that way."""


def register_alt_enter() -> None:
    """Makes the parser tell ESC CR from CR; once for the process, before the terminal is read."""
    cast("dict[str, object]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = _ALT_ENTER_MARK


def with_normalised_name(event: Key) -> Key:
    """The same key press under the name bindings use: `shift+\\r` is `shift+enter`."""
    name = _WHOLE_NAMES.get(event.key)
    if name is None:
        modifiers, plus, last = event.key.rpartition("+")
        if last not in _CONTROL_NAMES or not plus:
            return event
        name = f"{modifiers}+{_CONTROL_NAMES[last]}"
    return Key(name, None)
