"""Terminal input as plain data and back: keys, pastes, mouse, window size and focus."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.events import (
    AppBlur,
    AppFocus,
    Event,
    Key,
    MouseDown,
    MouseEvent,
    MouseMove,
    MouseScrollDown,
    MouseScrollLeft,
    MouseScrollRight,
    MouseScrollUp,
    MouseUp,
    Paste,
    Resize,
)
from textual.geometry import Size

from tui_agent.protocol.messages import JsonObject

if TYPE_CHECKING:
    # Loaded for recordings only.
    from tui_agent.recording import RecordingSink

_MOUSE: dict[str, type[MouseEvent]] = {
    "down": MouseDown,
    "up": MouseUp,
    "move": MouseMove,
    "scroll_down": MouseScrollDown,
    "scroll_up": MouseScrollUp,
    "scroll_left": MouseScrollLeft,
    "scroll_right": MouseScrollRight,
}
_MOUSE_NAMES = {kind: name for name, kind in _MOUSE.items()}
_FARTHEST = 10_000
"""Cells; a larger coordinate is treated as damaged."""


def input_recorder(sink: "RecordingSink") -> Callable[[Event], None]:
    """Return a function that records an event if it came from the terminal."""

    def record(event: Event) -> None:
        data = encode_input(event)
        if data is not None:
            sink.note("input", data)

    return record


def encode_input(event: Event) -> JsonObject | None:
    """Return an input event as plain data; None for any other event."""
    match event:
        case Key(key=key, character=character):
            return {"kind": "key", "key": key, "character": character}
        case Paste(text=text):
            return {"kind": "paste", "text": text}
        case Resize(size=size):
            return {"kind": "resize", "width": size.width, "height": size.height}
        case AppFocus():
            return {"kind": "focus"}
        case AppBlur():
            return {"kind": "blur"}
        case MouseEvent() if type(event) in _MOUSE_NAMES:
            return {
                "kind": "mouse",
                "what": _MOUSE_NAMES[type(event)],
                "x": event.x,
                "y": event.y,
                "by": [event.delta_x, event.delta_y],
                "button": event.button,
                "held": [event.shift, event.meta, event.ctrl],
            }
        case _:
            return None


def decode_input(data: JsonObject) -> Event | None:
    """Return the event of plain data; None if the data is damaged."""
    match data:
        case {"kind": "key", "key": str(key), "character": str() | None as character} if key:
            return Key(key, character)
        case {"kind": "paste", "text": str(text)}:
            return Paste(text)
        case {"kind": "resize", "width": int(width), "height": int(height)}:
            size = Size(width, height)
            return Resize(size, size)
        case {"kind": "focus"}:
            return AppFocus()
        case {"kind": "blur"}:
            return AppBlur()
        case {"kind": "mouse", "what": str(what)} if what in _MOUSE:
            return _mouse_event(_MOUSE[what], data)
        case _:
            return None


def _mouse_event(kind: type[MouseEvent], data: JsonObject) -> MouseEvent | None:
    match data:
        case {
            "x": int() | float() as x,
            "y": int() | float() as y,
            "by": [int(delta_x), int(delta_y)],
            "button": int(button),
            "held": [bool(shift), bool(meta), bool(ctrl)],
        } if 0 <= x <= _FARTHEST and 0 <= y <= _FARTHEST:
            return kind(None, x, y, delta_x, delta_y, button, shift, meta, ctrl, x, y)
        case _:
            return None
