"""The guard that decides if an answer counts.

An answer counts only after the question has been on the screen for a moment (`QUIET_SECONDS`). In dialogs over the
chat, `typed_answers.py` separates answers from text for the composer. In dialogs without a composer, an answer also
counts only `AFTER_KEY_SECONDS` after any key that was too early or has no meaning, so that neither a held key nor fast
typing answers. An early key does not make the first moment longer than that.
"""

from collections.abc import Callable

QUIET_SECONDS = 0.3
"""Seconds for which a question is on the screen before an answer counts."""
AFTER_KEY_SECONDS = 0.2
"""Seconds after another key before an answer counts."""
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
