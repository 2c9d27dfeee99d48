"""Lets a screen begin in the shape of its window: Textual learns the shape only after a first paint."""

from typing import TypeVar

from textual.geometry import Size
from textual.screen import Screen

Answer = TypeVar("Answer")


def apply_initial_breakpoints(screen: Screen[Answer], window: Size) -> None:
    """Sets the classes of the breakpoints of a screen that is being composed."""
    tables = (screen.HORIZONTAL_BREAKPOINTS, screen.VERTICAL_BREAKPOINTS)
    for size, breakpoints in zip(window, tables, strict=True):
        reached = [entry for entry in breakpoints or () if entry[0] <= size]
        if reached:
            screen.add_class(max(reached)[1])
