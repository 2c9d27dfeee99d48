"""Corrections of events from the terminal: names of keys, and sizes of the window.

Without the kitty protocol Alt+Enter arrives as ESC CR, which Textual reads as a plain Enter: a follow-up would be sent
as steering (https://github.com/Textualize/textual/issues/6378). With xterm's modifyOtherKeys, and in tmux with
extended-keys, it arrives as `CSI 27;3;13~`, which Textual names by its control character and without the modifier.

Textual reads the window size inside a signal handler. When the size changes several times in quick succession, the
handlers interrupt each other, the innermost reports the newest size first, and the app would keep the oldest.
"""

import shutil
from typing import cast

from textual._ansi_sequences import ANSI_SEQUENCES_KEYS
from textual.events import Key, Resize
from textual.geometry import Size

_ALT_ENTER_MARK = "\uf00d"
"""Placeholder for ESC CR between the parser, whose table takes single characters only, and `with_normalised_name`."""

_CONTROL_NAMES = {"\r": "enter", "\t": "tab", "\x1b": "escape", "\x7f": "backspace"}
_WHOLE_NAMES = {_ALT_ENTER_MARK: "alt+enter", "\r": "alt+enter"}
"""A bare control character is a key whose Alt the parser dropped: unmodified keys are never reported that way."""


def register_alt_enter() -> None:
    """Make the parser distinguish ESC CR from CR. Call this once, before the terminal is read."""
    cast("dict[str, object]", ANSI_SEQUENCES_KEYS)["\x1b\r"] = _ALT_ENTER_MARK


def with_normalised_name(event: Key) -> Key:
    """Return the key press under the name that bindings use: `shift+\\r` becomes `shift+enter`."""
    name = _WHOLE_NAMES.get(event.key)
    if name is None:
        modifiers, plus, last = event.key.rpartition("+")
        if last not in _CONTROL_NAMES or not plus:
            return event
        name = f"{modifiers}+{_CONTROL_NAMES[last]}"
    return Key(name, None)


def with_current_size(event: Resize) -> Resize:
    """Return the event with the current size, unless the terminal itself sent it, which it does in order."""
    if event.pixel_size is not None:
        return event
    # As in Textual, a fixed size in the environment takes precedence.
    size = Size(*shutil.get_terminal_size((event.size.width, event.size.height)))
    return Resize(size, size)
