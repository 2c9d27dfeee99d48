"""Terminal input survives the round trip through plain data; damaged data is ignored."""

from typing import Any

from textual.events import (
    AppBlur,
    AppFocus,
    Event,
    Key,
    MouseDown,
    MouseMove,
    MouseScrollUp,
    MouseUp,
    Paste,
    Resize,
)
from textual.geometry import Size

from tests.support.table import table
from tui_agent.ui.replay.input_events import decode_input, encode_input

MOUSE: tuple[Any, ...] = (None, 3, 4, 0, -1, 1, True, False, True, 3, 4)
EVENTS = [
    Key("a", "a"),
    Key("alt+enter", None),
    Paste("two\nlines"),
    Resize(Size(80, 24), Size(80, 24)),
    AppFocus(),
    AppBlur(),
    *(kind(*MOUSE) for kind in (MouseDown, MouseMove, MouseUp, MouseScrollUp)),
]


@table("event", EVENTS)
def test_an_event_survives_the_round_trip(event: Event) -> None:
    data = encode_input(event)

    assert data is not None
    again = decode_input(data)
    assert again is not None
    assert (type(again), encode_input(again)) == (type(event), data)


def test_other_events_are_not_input() -> None:
    assert encode_input(Event()) is None


@table(
    "damage",
    [
        {"kind": 5},
        {"x": "3"},
        {"x": -1},
        {"x": 1e300},
        {"by": [0]},
        {"button": None},
        {"held": [1, 2, 3]},
        {"what": "x"},
    ],
)
def test_damaged_data_is_nothing(damage: dict[str, Any]) -> None:
    data = encode_input(MouseDown(*MOUSE))

    assert data is not None
    assert decode_input({**data, **damage}) is None
    assert decode_input({"kind": "key", "key": ""}) is None
    assert decode_input({}) is None
