"""The positions of the events in a replay, and the row below it: position, speed and keys; clicking seeks."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.events import MouseDown, MouseEvent, MouseMove, MouseUp
from textual.message import Message
from textual.strip import Strip

from tui_agent.protocol.envelope import Envelope
from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.base.steady_widgets import RowStrips
from tui_agent.ui.text.line import Run

# --- positions --------------------------------------------------------------------------------------------------------

LONGEST_PAUSE = 5.0
"""Seconds that a pause without events lasts at most. Time passes faster in a longer one, so that clocks stay true: a
session may have been left for a night."""


class ReplayTimeline:
    """A session's events in order, each with its position in seconds from the start of the replay."""

    def __init__(self, envelopes: Sequence[Envelope], stamps: Sequence[int], notices: Sequence[str] = ()) -> None:
        """Compute the positions.

        Args:
            envelopes: the events; those of a long journal are parsed at each access.
            stamps: their `ts`, in milliseconds since the epoch.
            notices: reports of damaged parts that were skipped, a sentence each.
        """
        self.notices = notices
        """Reports of damaged parts that were skipped, a sentence each."""
        self.moments: list[float] = []
        """Position of each event in seconds; they never decrease."""
        self._envelopes = envelopes
        self._times: list[float] = []
        at = before = 0.0
        # Not by the monotonic times of the events: those of two processes cannot be compared.
        for stamp in stamps:
            # The machine's clock may have been set back.
            now = max(before, stamp / 1000)
            at += min(now - before, LONGEST_PAUSE) if self._times else 0.0
            self.moments.append(at)
            self._times.append(now)
            before = now

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def length(self) -> float:
        """Length in seconds."""
        return self.moments[-1] if self.moments else 0.0

    def count_until(self, at: float) -> int:
        """Return the number of events up to and including a position in seconds from the beginning of the replay."""
        return bisect_right(self.moments, at)

    def time_at(self, at: float) -> float:
        """Return the time at a position, in seconds on the clock of the replayed events."""
        following = self.count_until(at)
        if not 0 < following < len(self):
            return self._times[max(0, following - 1)] if self._times else 0.0
        start, end = self.moments[following - 1], self.moments[following]
        began, ended = self._times[following - 1], self._times[following]
        return began + (ended - began) * (at - start) / (end - start)

    def event(self, place: int) -> Envelope:
        """Return an event, with its time on the clock of the replay."""
        # A session that was resumed has events of several processes, whose monotonic clocks cannot be compared.
        return replace(self._envelopes[place], mono=self._times[place])


# --- the row below a replay -------------------------------------------------------------------------------------------

MIN_BAR = 10
MAX_BAR = 60
"""Cells of the bar."""


@dataclass(frozen=True, slots=True)
class PlayState:
    """The state of a player, for the row."""

    at: float
    """Seconds since the start."""
    length: float
    """Seconds."""
    speed: float = 1.0
    playing: bool = False
    looking: bool = False
    """True while the player is seeking that moment."""


@dataclass(frozen=True, slots=True)
class ScrubberRow:
    """The laid-out row."""

    runs: tuple[Run, ...]
    bar_start: int
    """The first cell of the bar."""
    bar_width: int

    def moment_at(self, x: int, length: float) -> float:
        """Return the moment of a cell of the row in seconds; outside of the bar, the nearest one."""
        share = (x - self.bar_start) / max(1, self.bar_width - 1)
        return length * min(1.0, max(0.0, share))


def scrubber_row(state: PlayState, width: int) -> ScrubberRow:
    """Lay the row out for a width in cells: always the bar, and as many hints as fit, the most important first."""
    before = f" {_sign(state)} {time_text(state.at)} "
    after = f" {time_text(state.length)}  {speed_text(state.speed)} "
    hints = _hints()
    while hints and len(before) + MIN_BAR + len(after) + len(" · ".join(hints)) + 2 > width:
        hints.pop()
    keys = f" {' · '.join(hints)}" if hints else ""
    room = width - len(before) - len(after) - len(keys)
    bar = max(1, min(MAX_BAR, room))
    done = round((bar - 1) * (state.at / state.length if state.length else 1.0))
    runs: tuple[Run, ...] = (
        (before, "sign"),
        ("━" * done, "done"),
        ("●", "head"),
        ("─" * (bar - 1 - done), "rest"),
        (after, "sign"),
        (keys, "keys"),
    )
    return ScrubberRow(runs, len(before), bar)


def time_text(seconds: float) -> str:
    """Return seconds as `1:05` or `1:00:05`."""
    # A sum of distances may be a rounding error below a whole second.
    minutes, rest = divmod(int(seconds + 1e-6), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def speed_text(speed: float) -> str:
    """Return a speed as `2×` or `1/2×`."""
    return f"{speed:g}×" if speed >= 1 else f"1/{1 / speed:g}×"


def _sign(state: PlayState) -> str:
    if state.looking:
        return "…"
    return "▶" if state.playing else "‖"


def _hints() -> list[str]:
    """Return the hints for keys, the most important first."""
    return [
        hint("player.play_or_pause"),
        hint("player.close"),
        _pair("player.back", "player.forward"),
        _pair("player.step_back", "player.step_forward"),
        _pair("player.slower", "player.faster", "speed"),
        _pair("player.first", "player.last", "ends"),
        hint("player.hide"),
    ]


def _pair(one: str, other: str, text: str | None = None) -> str:
    first, second = command(one), command(other)
    return f"{first.key_text}/{second.key_text} {text or first.text}"


class Scrubber(RowStrips):
    """One line, redrawn when its content changes."""

    DEFAULT_CSS = """
    Scrubber {
        height: 1;
        background: $panel;
        & > .scrub--sign { color: $text; }
        & > .scrub--done { color: $primary; }
        & > .scrub--head { color: $accent; text-style: bold; }
        & > .scrub--rest { color: $text-muted; }
        & > .scrub--keys { color: $text-muted; }
    }
    """
    STYLE_PREFIX = "scrub--"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"scrub--{name}" for name in ("sign", "done", "head", "rest", "keys")}

    @dataclass
    class Sought(Message):
        """The user seeks another moment."""

        at: float
        """Seconds since the start."""

    def __init__(self, length: float) -> None:
        super().__init__(id="scrubber")
        self.state = PlayState(0.0, length)
        """The state on display."""
        self._held = False

    def show(self, state: PlayState) -> None:
        changed = scrubber_row(self.state, self.size.width) != scrubber_row(state, self.size.width)
        self.state = state
        if changed:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        return self.strip_of(scrubber_row(self.state, self.size.width).runs)

    def follow_mouse(self, event: MouseEvent) -> None:
        """Seek where the mouse was pressed on the row, and follow it until the button is released.

        The coordinates are those of the screen: a dialog may cover the rest of it.
        """
        if isinstance(event, MouseDown):
            self._held = self.region.contains(int(event.screen_x), int(event.screen_y))
        if self._held and isinstance(event, MouseDown | MouseMove):
            self._seek(int(event.screen_x) - self.region.x)
        if isinstance(event, MouseUp):
            self._held = False

    def _seek(self, x: int) -> None:
        row = scrubber_row(self.state, self.size.width)
        self.post_message(self.Sought(row.moment_at(x, self.state.length)))
