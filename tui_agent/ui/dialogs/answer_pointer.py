"""The mouse over a question: which clicks on its answers count.

A click counts if the button goes down and up on the same answer, as its key would at both moments. A pointer that
rests where the answer appeared was probably meant for what was there before: it counts only after `RESTING_SECONDS`.
A click that brings the window to the front answers nothing.
"""

from collections.abc import Callable

RESTING_SECONDS = 1.0
"""Seconds for which a question is on the screen before a pointer that did not move to the answer counts."""
FOCUS_SECONDS = 0.3
"""Seconds after the window got the focus before a click counts."""


class AnswerPointer:
    """Follows the pointer and its button. Pure."""

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
