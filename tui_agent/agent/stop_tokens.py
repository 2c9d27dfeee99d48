"""The two ways to end a run, and how an await notices the harder one, without a task of its own that watches."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

from tui_agent.protocol.cancellation import CancellationToken

_T = TypeVar("_T")

_AT_ONCE = 0.0


@dataclass(frozen=True, slots=True)
class StopTokens:
    """One run's brakes (C33, P33). Fresh for each run: an old one never stops a new run (P27)."""

    now: CancellationToken
    """Set by an abort: the stream and the calls end."""
    soon: CancellationToken
    """A child of `now`, set by a stop: the run ends after this step, and nothing is waited for in between."""

    @classmethod
    def linked_to(cls, *callers: CancellationToken | None) -> "StopTokens":
        """StopTokens that the callers' tokens, where there are any, can pull, too (C34)."""
        now = CancellationToken()
        for caller in callers:
            if caller is not None:
                caller.adopt(now)
        return cls(now, now.child())


async def unless_cancelled(token: CancellationToken, work: Awaitable[_T]) -> _T:
    """Awaits `work`; cancels it as soon as `token` is set and waits until it has tidied up.

    Raises:
        OperationCancelledError: the token was set; with its reason. Cancellation from outside stays what it is.
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
