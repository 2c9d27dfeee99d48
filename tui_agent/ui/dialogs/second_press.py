"""An action of a page that the user confirms by giving it a second time.

The second press counts like an answer to a question: only once the page has said what it would do, and a moment
later, so that neither a held key nor a double click confirms.
"""

from collections.abc import Callable
from typing import Any

from textual.dom import DOMNode
from textual.screen import Screen

from .answer_guard import AnswerGuard
from .answer_pointer import AnswerPointer

CONFIRM_SECONDS = 3.0
"""Seconds after the first press within which a second one confirms."""


class SecondPress:
    """The action and its target that wait for their second press, if any."""

    def __init__(self, screen: Screen[Any], clock: Callable[[], float]) -> None:
        """Create the state in which nothing waits.

        Args:
            screen: the page, which says what a second press would do.
            clock: monotonic seconds.
        """
        self._screen = screen
        self._clock = clock
        self._guard = AnswerGuard(clock)
        self._pointer = AnswerPointer(lambda: self._guard.asked_at, clock)
        self._asked: tuple[str, str] | None = None
        self._asked_at = 0.0

    def begin(self, app: DOMNode) -> None:
        """Watch the focus of the app's window, once the page is mounted."""
        self._screen.watch(app, "app_focus", self._pointer.focused, init=False)

    def waits_for(self, action: tuple[str, str]) -> bool:
        """Return True if a second press would confirm the action, now or after the quiet moment."""
        return self._asked == action and self._clock() - self._asked_at <= CONFIRM_SECONDS

    def ask(self, action: tuple[str, str]) -> None:
        """Let the action wait for its second press; the caller shows what that would do."""
        self._asked, self._asked_at = action, self._clock()
        self._guard.withdrawn()
        self._screen.call_after_refresh(self._guard.drawn)

    def forget(self) -> None:
        """Let no action wait any more: the page no longer says what a second press would do."""
        self._asked = None

    def confirm(self, action: tuple[str, str]) -> bool:
        """Return True if this press confirms the action that waits; one that comes too early does not."""
        if not self.waits_for(action) or not self._guard.accepts():
            return False
        self._asked = None
        return True

    def click_counts(self, action: str) -> bool:
        """Return True unless a click would confirm the action and may be the second half of a double click."""
        asked = self._asked
        return asked is None or asked[0] != action or not self.waits_for(asked) or self._pointer.counts
