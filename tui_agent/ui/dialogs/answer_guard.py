"""When an answer counts: only after the question was drawn and a quiet moment passed (P54). Pure.

Somebody who types when a question appears does not answer it: every key that came too early, or means nothing here,
begins the quiet moment anew, so that neither a held key nor fast typing ever gets through.
"""

from collections.abc import Callable

QUIET_SECONDS = 0.3
"""How long nothing must have been pressed before an answer counts."""
_ROUNDING = 1e-6
"""Differences of times are not exact."""


class AnswerGuard:
    """Lets answers through once nobody can be typing something else any more."""

    def __init__(self, clock: Callable[[], float], begun: Callable[[], None] = lambda: None) -> None:
        """Makes a guard; `begun` is called whenever the quiet moment begins: the time to show that no answer counts."""
        self.too_early = False
        """Whether an answer was given that did not count."""
        self._clock = clock
        self._begun = begun
        self._quiet_since: float | None = None

    @property
    def was_drawn(self) -> bool:
        """Whether the question is on the screen."""
        return self._quiet_since is not None

    @property
    def armed(self) -> bool:
        """Whether an answer would count now; looking changes nothing."""
        return self._quiet_since is not None and self._clock() - self._quiet_since > QUIET_SECONDS - _ROUNDING

    def drawn(self) -> None:
        """The question, or another one in its place, is on the screen from now on."""
        self._begin()

    def withdrawn(self) -> None:
        """Something else is asked from now on: nothing counts until that is on the screen."""
        self._quiet_since = None
        self._begun()

    def accepts(self) -> bool:
        """Whether an answer that is given now counts; one that does not disturbs."""
        armed = self.armed
        if not armed:
            self.too_early = True
            self.disturbed()
        return armed

    def disturbed(self) -> None:
        """Something was pressed or pasted that means nothing here."""
        if self._quiet_since is not None:
            self._begin()

    def _begin(self) -> None:
        self._quiet_since = self._clock()
        self._begun()
