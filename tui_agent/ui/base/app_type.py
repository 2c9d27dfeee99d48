"""Types of the app and its screens, and the pace of their frames.

Without the types, the property `app` of Textual has none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast

from textual import getters
from textual.app import App
from textual.events import Event
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

FRAME_SECONDS = 0.05
"""Least seconds between two frames."""
IDLE_SHARE = 9
"""Pause after a frame, as a multiple of its duration."""
LONGEST_PAUSE = 0.12
"""Most seconds between two frames, however long they take."""
INPUT_SECONDS = 0.15
"""Seconds after an input in which no frame waits for the one before."""
HEAD_SECONDS = 0.005
"""Seconds after an input in which frames wait for its effect."""
TYPED_SECONDS = 0.004
"""Least seconds between two frames that show typed text before the rest."""
MESSAGE_SECONDS = 0.012
"""Seconds after the user sent a message in which no frame delays it."""


@dataclass
class FileEditRequested(Message):
    """The user wants a file in their editor."""

    path: str
    """Absolute path."""
    line: int
    """Line, from 1; 0: none."""


class FramePace:
    """Decides when the next frame is painted."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._next_frame = self._next_typed = self._held_until = self._input_until = 0.0

    def note_input(self) -> None:
        """Let the frames of the next moment follow one another without a pause."""
        now = self._clock()
        self._held_until, self._input_until = now + HEAD_SECONDS, now + INPUT_SECONDS

    def is_quiet(self, seconds: float) -> bool:
        """Return True if the last input is longer ago than that."""
        return self._clock() > self._input_until - INPUT_SECONDS + seconds

    def note_message(self) -> None:
        """Let a message that the user sent leave before the screen shows it."""
        self._held_until = self._next_typed = self._clock() + MESSAGE_SECONDS

    def paint(self, frame: Callable[[], object], *, always: bool = False) -> None:
        """Paint a frame unless it has to wait; then it is offered again. With `always`, none waits."""
        began = self._clock()
        waits = began < self._held_until or self._input_until <= began < self._next_frame
        if waits and not always:
            return
        frame()
        ended = self._clock()
        self._next_frame = ended + min(max(FRAME_SECONDS, IDLE_SHARE * (ended - began)), LONGEST_PAUSE)

    def paint_typed(self, frame: Callable[[], object]) -> None:
        """Paint a frame of typed text alone, unless there was one just now; then `paint` shows it."""
        if self._next_typed <= self._clock() < self._input_until:
            frame()
            self._next_typed = self._clock() + TYPED_SECONDS


def any_app() -> type[App[object]]:
    """Return the app's type, for `app = getters.app(any_app)` in a class body."""
    return App


def _paint_typed(screen: "AnyScreen") -> None:
    """Paint what the user typed at once: the timer's next turn is up to 17 ms away."""
    private, base = cast(Any, screen), cast(Any, Screen)

    def frame() -> None:
        # If nothing has moved, the other widgets follow with the timer.
        others: set[Widget] = set()
        if not (private._layout_required or private._scroll_required or private._repaint_required):
            others = private._dirty_widgets - {screen.focused}
            private._dirty_widgets -= others
        base._on_timer_update(screen)
        private._dirty_widgets |= others

    if screen.focused in private._dirty_widgets:
        screen.pace.paint_typed(frame)


class AnyScreen(Screen[None]):
    """A screen as its controllers see it: they push dialogs, notify and set timers, and know none of its widgets."""

    app = getters.app(any_app)
    pace = FramePace()

    on_idle = _paint_typed

    def _on_timer_update(self) -> None:
        self.pace.paint(super()._on_timer_update, always=self.app.is_headless)


def show_typed(field: Widget) -> None:
    """Paint what was typed into a field at once, before the messages about it, unless something moves by it."""
    if not field.is_attached:
        return
    screen: Any = field.screen
    its: Any = field
    moves = its._layout_required or its._scroll_required or screen._layout_required
    if isinstance(screen, AnyScreen) and field is screen.focused and not moves:
        its._repaint_required = False
        cast(Any, screen)._dirty_widgets.add(field)
        _paint_typed(screen)


class InputTaker(AnyScreen):
    """A screen that takes all input of the user, also while a dialog covers it."""

    async def take(self, event: Event) -> bool:
        """Handle a key, paste or mouse event; return False to leave it to the app."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the screen and its dialogs."""
        raise NotImplementedError
