"""Rules for keys and clicks that count as answers. Pure: times are seconds of one clock, and keys are values.

Two rules decide about keys:

1. A question takes its answers once it was seen for `SEEN_SECONDS` (`AnswerGuard`). It takes them at once if it follows
   an answer, or if the user opens it again.
2. Printable keys without a pause of `PAUSE_SECONDS` are answers together, or text together (`TypedRun`). Answers to
   several questions follow one another; anything else makes text of all of them. So an answer takes effect only after
   the pause, and a text that continues it recalls it.

A click needs more than a key (`AnswerPointer`), because a user gives one more easily by mistake.
"""

from collections.abc import Callable
from typing import Generic, Literal, TypeAlias, TypeVar

SEEN_SECONDS = 0.5
"""Seconds for which a question is on the screen before an answer counts."""
PAUSE_SECONDS = 0.5
"""Seconds without another printable key after which answers take effect."""
PACE_SECONDS = 0.2
"""Seconds from one answer to the next one, at least; a held key and the letters of a word are faster."""
RESTING_SECONDS = 1.0
"""Seconds for which a question is on the screen before a pointer that did not move to the answer counts."""
FOCUS_SECONDS = 0.3
"""Seconds after the window got the focus before a click counts."""
_ROUNDING = 1e-6
"""Tolerance for differences between times."""

Letter: TypeAlias = Literal["ends", "leads", "selects", "dead", "none"]
"""Meaning of a key in the dialog: it ends the question, leads to another step, only selects or shows something, belongs
to an answer that is impossible now, or means nothing."""
Verdict: TypeAlias = Literal["act", "hold", "dead", "text"]
"""Act now, although a text may recall the answer; act after the pause; say why the key does nothing; or type all."""
K = TypeVar("K")


class AnswerGuard:
    """Rule 1: decides if a question was seen long enough."""

    def __init__(
        self, clock: Callable[[], float], changed: Callable[[], None] = lambda: None, *, at_once: bool = False
    ) -> None:
        """Create a guard that accepts nothing yet; `changed` is called whenever answers begin or cease to count."""
        self.clock = clock
        """Monotonic seconds."""
        self.reason = ""
        """Reason why the last key did nothing; empty if it did something."""
        self.asked_at: float | None = None
        """Time of the clock at which the question was drawn; None before that."""
        self._changed = changed
        self._at_once = at_once

    @property
    def was_drawn(self) -> bool:
        """True if the question is on the screen."""
        return self.asked_at is not None

    @property
    def armed(self) -> bool:
        """True if an answer counts now."""
        return self.counts_at(self.clock())

    def counts_at(self, time: float) -> bool:
        """Return True if an answer given at `time` counts, in seconds on the clock of the guard."""
        if self.asked_at is None:
            return False
        # Sums of floats, such as 0.05 + 0.45, may fall just short of the half second.
        return time - self.asked_at > (0.0 if self._at_once else SEEN_SECONDS) - _ROUNDING

    def drawn(self) -> None:
        """Note that the question is on the screen."""
        self.asked_at = self.clock()
        self._changed()

    def withdrawn(self) -> None:
        """Accept nothing until another question is drawn."""
        # Only a question that follows an answer takes keys at once, not the one that replaces it.
        self.asked_at, self._at_once, self.reason = None, False, ""
        self._changed()

    def explain(self, reason: str) -> None:
        """Show why a key did nothing; an empty reason goes away."""
        if reason != self.reason:
            self.reason = reason
            self._changed()


class TypedRun(Generic[K]):
    """Rule 2: printable keys without a pause between them, which are all answers or all text."""

    def __init__(self) -> None:
        self.keys: list[K] = []
        """The keys since the last pause, oldest first."""
        self.held: K | None = None
        """The key that acts after the pause."""
        self._name = ""
        self._at = float("-inf")
        self._only_selects = self._stands_alone = self._is_text = False

    @property
    def last(self) -> K | None:
        """The newest key; None if the run is empty."""
        return self.keys[-1] if self.keys else None

    def is_over(self, now: float) -> bool:
        """Return True if a pause has passed since the newest key, so that the run is to be ended."""
        return bool(self.keys) and now - self._at > PAUSE_SECONDS - _ROUNDING

    def press(self, now: float, key: K, name: str, letter: Letter, *, counts: bool) -> Verdict:
        """Add a printable key and return what becomes of it; the same `name` again is not the next letter of a word."""
        follows, again, pace = bool(self.keys), name == self._name, now - self._at > PACE_SECONDS - _ROUNDING
        if letter == "selects" and (self._only_selects or not follows):
            # Such keys are held down, as to page; and no text begins with a blank.
            self._name, self._at, self._only_selects = name, now, True
            self.keys = [] if name == "space" else [key]
            return "act"
        self.keys.append(key)
        self._name, self._at, self._only_selects = name, now, False
        # Only answers that end their questions, and keys that select, follow one another.
        stands_alone, self._stands_alone = self._stands_alone, letter in ("leads", "dead")
        # `ss` shows a rule and stores it; `sn` is the beginning of a word.
        other = not again and (stands_alone or self._stands_alone)
        if letter == "none" or self._is_text or (follows and (other or not pace or self.held is not None)):
            self.held, self._is_text = None, True
            return "text"
        if letter == "dead" or not (counts or letter == "selects"):
            return "dead"
        self.held = key if letter == "leads" else None
        return "hold" if letter == "leads" else "act"

    def end(self) -> tuple[K, ...]:
        """Return the keys and begin another run."""
        keys, self.keys, self.held, self._name = tuple(self.keys), [], None, ""
        self._only_selects = self._stands_alone = self._is_text = False
        return keys


class AnswerPointer:
    """Follows the pointer and its button, to tell if a click counts.

    A click counts if the button goes down and up on the same answer, as its key would at both moments. A pointer that
    rests where the answer appeared was probably meant for what was there before: it counts only after
    `RESTING_SECONDS`. A click that brings the window to the front answers nothing.
    """

    def __init__(self, asked_at: Callable[[], float | None], clock: Callable[[], float]) -> None:
        """Create a pointer that rests; `asked_at` returns since when the question is on the screen."""
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
        """Return True if the button went down on the same answer to the same question; None: on none."""
        # The label may belong to the next question by the time the button goes up.
        pressed, self._pressed = self._pressed, None
        return pressed is not None and pressed == (action, self._asked_at())
