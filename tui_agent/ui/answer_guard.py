"""When an answer counts: only after the question was drawn and a quiet moment passed (P54). Pure.

Somebody who types when a question appears does not answer it: every key that came too early begins the quiet moment
anew, so that neither a held key nor fast typing ever gets through.
"""

from collections.abc import Callable

QUIET_SECONDS = 0.3
"""How long nothing must have been pressed before the first answer counts."""


class AnswerGuard:
    """Lets answers through once nobody can be typing something else any more."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._quiet_since: float | None = None
        self._armed = False

    @property
    def armed(self) -> bool:
        """Whether the next answer counts; looking changes nothing."""
        return self._armed or self._is_quiet()

    def drawn(self) -> None:
        """The question, or another one in its place, is on the screen from now on."""
        self._armed, self._quiet_since = False, self._clock()

    def accepts(self) -> bool:
        """Whether an answer that is given now counts."""
        if not self._armed:
            self._armed = self._is_quiet()
            if not self._armed:
                self.disturbed()
        return self._armed

    def disturbed(self) -> None:
        """Something was pressed or pasted."""
        if not self._armed and self._quiet_since is not None:
            self._quiet_since = self._clock()

    def _is_quiet(self) -> bool:
        return self._quiet_since is not None and self._clock() - self._quiet_since >= QUIET_SECONDS
