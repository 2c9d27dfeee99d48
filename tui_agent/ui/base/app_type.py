"""Types of the app and its screens, the time between their frames, and layout within one frame.

Without the types, the property `app` of Textual has none.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic
from typing import Any, TypeAlias, TypeVar, cast

from textual import getters
from textual._compositor import ChopsUpdate, Compositor, ReflowResult
from textual.app import App
from textual.events import Event
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from tui_agent.protocol.amounts import count_text

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
        """Return True if the last input is longer ago than some seconds."""
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


class ImmediateLayout(Widget):
    """A container whose children can change their place in the next frame, not in the one after it."""

    def rearrange(self) -> None:
        """Arrange the children anew in the next frame."""
        # Textual handles a child's request for a new layout only after that frame, which shows the old places.
        self._clear_arrangement_cache()
        self.refresh(layout=True)
        self.screen.refresh(layout=True)


Answer = TypeVar("Answer")


def apply_initial_breakpoints(screen: Screen[Answer], window: Size) -> None:
    """Set the breakpoint classes of a screen that is being composed, for a window of this size."""
    tables = (screen.HORIZONTAL_BREAKPOINTS, screen.VERTICAL_BREAKPOINTS)
    for size, breakpoints in zip(window, tables, strict=True):
        reached = [entry for entry in breakpoints or () if entry[0] <= size]
        if reached:
            screen.add_class(max(reached)[1])


def report_each_layout(screen: Screen[Any]) -> None:
    """Give a new screen a compositor from which no widget misses a `Resize`, and which asks only for changed rows."""
    cast(Any, screen)._compositor = _LayoutCompositor()


_Place: TypeAlias = tuple[Widget, Region, Region]
"""A widget, its region, and the part of it that its containers show."""


class _LayoutCompositor(Compositor):
    """Compositor that compares each layout with the one before, and asks widgets only for rows that a frame shows.

    Textual asks each widget between the first and the last changed row for all its rows, also those that others cover.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[Widget, Size] = {}
        self._layout: tuple[object, object] | None = None
        self._shown: list[_Place] = []
        self._rows: dict[int, list[tuple[int, int, _Place]]] = {}

    def clear(self) -> None:
        """Forget all widgets."""
        super().clear()
        self._sizes.clear()
        self._layout, self._shown, self._rows = None, [], {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Lay out all widgets and return those that were hidden, shown or resized since the last call."""
        before, result = self._sizes, super().reflow(parent, size)
        self._sizes = now = {widget: geometry.region.size for widget, geometry in self._full_map.items()}
        return ReflowResult(
            hidden=result.hidden,
            shown=result.shown | (now.keys() - before.keys()),
            resized=result.resized | {widget for widget, its in now.items() if before.get(widget, its) != its},
        )

    def render_partial_update(self) -> ChopsUpdate | None:
        """Return the changed parts of the screen; None if nothing has changed."""
        regions = [region.intersection(self.size.region) for region in self._dirty_regions]
        self._dirty_regions.clear()
        spans = list(self._regions_to_spans(filter(None, regions)))
        if not spans:
            return None
        return ChopsUpdate(self._pieces(spans), spans, [row[1:] for row in self.cuts])

    def _pieces(self, spans: Iterable[tuple[int, int, int]]) -> list[dict[int, Strip | None]]:
        """Return the pieces of each row that overlap a span, by their first column."""
        pieces: list[dict[int, Strip | None]] = [{} for _ in self.cuts]
        wanted: dict[_Place, dict[int, set[tuple[int, int]]]] = {}
        for y, first, last in spans:
            pieces[y] = pieces[y] or dict.fromkeys(self.cuts[y][:-1])
            for x, end, place in self._places_in(y):
                if x < last and end > first:
                    wanted.setdefault(place, {}).setdefault(y, set()).add((x, end))
        for (widget, region, shown), rows in wanted.items():
            top = min(rows)
            crop = Region(shown.x - region.x, top - region.y, shown.width, max(rows) - top + 1)
            strips = widget.render_lines(crop)
            for y, columns in rows.items():
                strip = strips[y - top]
                for x, end in columns:
                    # A strip that divides itself into one keeps itself alive until garbage is collected.
                    whole = end - x == strip.cell_length
                    pieces[y][x] = strip if whole else strip.crop(x - shown.x, end - shown.x)
        return pieces

    def _places_in(self, y: int) -> list[tuple[int, int, _Place]]:
        """Return start and end of each piece of a row, and the widget in front there; found once for each layout."""
        layout = self.visible_widgets, self.cuts
        if self._layout is None or any(one is not other for one, other in zip(layout, self._layout, strict=True)):
            self._layout = layout
            # In front are the first ones.
            self._shown = [(widget, its, its.intersection(clip)) for widget, (its, clip) in layout[0].items()]
            self._rows = {}
        found = self._rows.get(y)
        if found is None:
            here = [place for place in self._shown if place[2].y <= y < place[2].bottom]
            pieces = pairwise(self.cuts[y])
            places = ((x, end, next((one for one in here if one[2].contains(x, y)), None)) for x, end in pieces)
            found = self._rows[y] = [(x, end, place) for x, end, place in places if place is not None]
        return found


def copy_text(app: App[Any], text: str) -> None:
    """Copy a text and show the number of its lines."""
    app.copy_to_clipboard(text)
    app.notify(copied_notice(text), markup=False)


def copied_notice(text: str) -> str:
    """Return the message about a copy, such as `Copied 14 lines`."""
    return f"Copied {count_text(len(text.rstrip(chr(10)).split(chr(10))), 'line')}"
