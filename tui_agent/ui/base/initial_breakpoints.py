"""Breakpoint classes for a screen's first paint; Textual itself sets them only after it."""

from typing import TypeVar

from textual.geometry import Size
from textual.screen import Screen

Answer = TypeVar("Answer")


def apply_initial_breakpoints(screen: Screen[Answer], window: Size) -> None:
    """Set the breakpoint classes of a screen that is being composed, for a window of this size."""
    tables = (screen.HORIZONTAL_BREAKPOINTS, screen.VERTICAL_BREAKPOINTS)
    for size, breakpoints in zip(window, tables, strict=True):
        reached = [entry for entry in breakpoints or () if entry[0] <= size]
        if reached:
            screen.add_class(max(reached)[1])
