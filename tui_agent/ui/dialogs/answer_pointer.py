"""The mouse over the labels of keys: which clicks count on the answers of a question.

A click counts if the button goes down and up on the same answer, as its key would at both moments. A pointer that
rests where the answer appeared was probably meant for what was there before: it counts only after `RESTING_SECONDS`.
A click that brings the window to the front answers nothing.
"""

from collections.abc import Callable
from typing import Any

from textual.screen import Screen

from tui_agent.ui.base.command_type import Command, Where
from tui_agent.ui.base.commands import commands_for
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.styled_lines import key_at

RESTING_SECONDS = 1.0
"""Seconds for which a question is on the screen before a pointer that did not move to the answer counts."""
FOCUS_SECONDS = 0.3
"""Seconds after the window got the focus before a click counts."""


class AnswerPointer:
    """Follows the pointer and its button."""

    def __init__(self, asked_at: Callable[[], float | None], clock: Callable[[], float]) -> None:
        """Create a pointer that rests.

        Args:
            asked_at: returns since when the question is on the screen; None before that.
            clock: monotonic seconds.
        """
        self._asked_at = asked_at
        self._clock = clock
        self._came_at = self._focused_at = float("-inf")
        self._pressed: tuple[str, float | None] | None = None

    def came(self) -> None:
        """Note that the pointer has moved to another answer."""
        self._came_at = self._clock()

    def focused(self) -> None:
        """Note that the window has got the focus, perhaps by this very click."""
        self._focused_at = self._clock()

    @property
    def counts(self) -> bool:
        """True if a click now is meant for this question."""
        asked_at, now = self._asked_at(), self._clock()
        has_come = asked_at is not None and (self._came_at >= asked_at or now - asked_at >= RESTING_SECONDS)
        return has_come and now - self._focused_at >= FOCUS_SECONDS

    def press(self, action: str | None) -> None:
        """Note the action of the answer on which the button went down; None: on none, or too early."""
        self._pressed = (action, self._asked_at()) if action is not None else None

    def release(self, action: str | None) -> bool:
        """Return True if the button went down on the same answer to the same question."""
        pressed, self._pressed = self._pressed, None
        return pressed is not None and pressed == (action, self._asked_at())


def act_on_key(
    screen: Screen[Any],
    where: Where,
    row: Line | None,
    column: int,
    counts: Callable[[str], bool] = lambda _: True,
) -> None:
    """Act as the key whose label was clicked on a page that is not a question.

    Args:
        screen: the page.
        where: its part of the table of commands.
        row: the row with the keys.
        column: cell of the row, from 0.
        counts: takes an action, and returns False if a click does not give it now.
    """
    entry = command_at(screen, where, row, column)
    if entry is not None and counts(entry.action_name):
        getattr(screen, f"action_{entry.action_name}")()


def command_at(screen: Screen[Any], where: Where, row: Line | None, column: int) -> Command | None:
    """Return the command whose label is at a cell of a row of keys; None if it does not work now."""
    label = key_at(row, column) if row is not None else ""
    entries = (entry for entry in commands_for(where) if label and entry.key_text == label)
    return next((entry for entry in entries if screen.check_action(entry.action_name, ())), None)
