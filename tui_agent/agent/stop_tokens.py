"""The tokens that stop or abort a run, their codes, and `unless_cancelled`, an await that such a token ends."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from tui_agent.protocol.cancellation import CancellationToken

_T = TypeVar("_T")

STOP_REQUESTED = "stop_requested"
"""Code of the notice that the run will end after this step."""


ABORT_REQUESTED = "abort_requested"
"""Code of the notice that the run ends now."""


_AT_ONCE = 0.0


@dataclass(frozen=True, slots=True)
class StopTokens:
    """The tokens that end one run. New for each run, so that an old one never stops a later run."""

    now: CancellationToken
    """Set by an abort: the stream and the calls end now."""
    soon: CancellationToken
    """A child of `now`, set by a stop: the run ends after this step, and waits between attempts end at once."""

    @classmethod
    def linked_to(cls, *callers: CancellationToken | None) -> "StopTokens":
        """Return new tokens that the callers' tokens set, too."""
        now = CancellationToken()
        for caller in callers:
            if caller is not None:
                caller.adopt(now)
        return cls(now, now.child())


async def unless_cancelled(token: CancellationToken, work: Awaitable[_T]) -> _T:
    """Await `work`; as soon as `token` is set, cancel it and wait for its clean-up.

    Raises:
        OperationCancelledError: the token was set; with its reason.
        asyncio.CancelledError: the task was cancelled from outside.
    """
    try:
        async with asyncio.timeout(None) as limit:
            forget = token.on_cancel(lambda: limit.reschedule(_AT_ONCE))
            try:
                return await work
            finally:
                forget()
    except TimeoutError:
        token.raise_if_set()
        raise
