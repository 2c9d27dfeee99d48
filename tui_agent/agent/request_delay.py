"""A wait before the next request to the model, ordered from outside: a rate limit that others met."""

import asyncio
from time import monotonic


class RequestDelay:
    """Time before which no request is sent. An agent shares it with its sub-agents."""

    def __init__(self) -> None:
        self._until = 0.0

    def extend(self, seconds: float) -> None:
        """Send no request for so many seconds from now; a longer wait stays."""
        self._until = max(self._until, monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds until a request may be sent."""
        return max(0.0, self._until - monotonic())

    async def over(self) -> None:
        """Wait until a request may be sent."""
        while left := self.left:
            await asyncio.sleep(left)
