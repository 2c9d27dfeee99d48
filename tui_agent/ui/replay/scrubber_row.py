"""The content of the row below a recording: position, speed and keys. Pure."""

from dataclasses import dataclass

from tui_agent.ui.base.commands import command, hint
from tui_agent.ui.text.styled_lines import Run

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
