"""Numbers of the steps of a session: each run counts from its first step, the session from the first of all."""

import re
from dataclasses import dataclass

_BOUNDARY = re.compile(r"step ([0-9]+)")


@dataclass(slots=True)
class StepNumbers:
    """Counts the steps of the root agent over all runs."""

    is_known: bool = True
    """False if earlier steps of the session are missing."""
    _before: int = 0
    _last: int = 0

    def begin_run(self) -> None:
        """Count the steps of a new run after all others."""
        self._before = self._last

    def begin_step(self, index: int) -> int:
        """Return the number of a step, from 1; `index` counts within its run, from 0."""
        number = self._before + index + 1
        self._last = max(self._last, number)
        return number

    def in_session(self, boundary: str) -> str:
        """Return a point of the run, such as `after step 2`, with the number of the session; empty if it is unknown."""
        if not self.is_known:
            return "" if _BOUNDARY.search(boundary) else boundary
        return _BOUNDARY.sub(lambda match: f"step {self._before + int(match[1])}", boundary)
