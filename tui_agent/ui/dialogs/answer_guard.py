"""Guards that decide if a key or a click counts as an answer.

A key counts only after the question has been on the screen for a moment (`QUIET_SECONDS`). In dialogs over the chat,
`typed_answers.py` separates answers from text for the composer. In dialogs without a composer, an answer also counts
only `AFTER_KEY_SECONDS` after any key that was too early or has no meaning, so that neither a held key nor fast typing
answers. An early key does not make the first moment longer than that.

A click counts if the button goes down and up on the same answer, as its key would at both moments. A pointer that
rests where the answer appeared was probably meant for what was there before: it counts only after `RESTING_SECONDS`.
A click that brings the window to the front answers nothing.

A second press that confirms an action of a page counts like an answer: only once the page has said what it would do,
and a moment later, so that neither a held key nor a double click confirms.
"""

from collections.abc import Callable
from typing import Any

from textual.dom import DOMNode
from textual.screen import Screen

from tui_agent.ui.base.command_type import Command, Where
from tui_agent.ui.base.commands import commands_for
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.styled_lines import key_at

QUIET_SECONDS = 0.3
"""Seconds for which a question is on the screen before an answer counts."""
AFTER_KEY_SECONDS = 0.2
"""Seconds after another key before an answer counts."""
RESTING_SECONDS = 1.0
"""Seconds for which a question is on the screen before a pointer that did not move to the answer counts."""
FOCUS_SECONDS = 0.3
"""Seconds after the window got the focus before a click counts."""
CONFIRM_SECONDS = 3.0
"""Seconds after the first press within which a second one confirms."""
_ROUNDING = 1e-6
"""Tolerance for differences between times."""


class AnswerGuard:
    """Decides whether an answer counts."""

    def __init__(
        self,
        clock: Callable[[], float],
        begun: Callable[[], None] = lambda: None,
        *,
        first_pause: float = QUIET_SECONDS,
    ) -> None:
        """Create a guard that accepts nothing yet.

        Args:
            clock: monotonic seconds.
            begun: called whenever the quiet moment begins, so that the answers can be dimmed.
            first_pause: seconds of the quiet moment after the first drawing.
        """
        self.too_early = False
        """True once an answer was given that did not count."""
        self.asked_at: float | None = None
        """Time of the clock at which the question was drawn; None before that."""
        self.clock = clock
        """Monotonic seconds."""
        self._begun = begun
        self._counts_from: float | None = None
        self._pause = first_pause

    @property
    def was_drawn(self) -> bool:
        """True if the question is on the screen."""
        return self._counts_from is not None

    @property
    def armed(self) -> bool:
        """True if an answer would count now."""
        return self._counts_from is not None and self.clock() > self._counts_from - _ROUNDING

    def drawn(self) -> None:
        """Begin the quiet moment: the question is on the screen."""
        self.asked_at = self.clock()
        self._counts_from = self.asked_at + self._pause
        self._begun()

    def withdrawn(self) -> None:
        """Accept nothing until another question is drawn."""
        self._counts_from, self._pause, self.asked_at = None, QUIET_SECONDS, None
        self._begun()

    def accepts(self) -> bool:
        """Return True if an answer given now counts; none counts shortly after one that does not."""
        armed = self.armed
        if not armed:
            self.too_early = True
            self.disturbed()
        return armed

    def disturbed(self) -> None:
        """Let no answer count shortly after a key or paste that means nothing in the dialog or was too early."""
        if self._counts_from is not None:
            self._counts_from = max(self._counts_from, self.clock() + AFTER_KEY_SECONDS)
            self._begun()

    def note_early(self) -> None:
        """Note that an answer did not count; the quiet moment continues."""
        self.too_early = True
        self._begun()


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
