"""Limits of a run: steps, budget, repeated calls, attempts at a request, and the longest wait that a server may set."""

import asyncio
from dataclasses import dataclass
from time import monotonic

from tui_agent.protocol.errors import ConfigurationError, ProviderError
from tui_agent.protocol.value_checks import expect_number, expect_seconds, expect_whole, refuse_unknown_fields

from .run_report import RunTally

DEFAULT_MAX_STEPS = 16
"""The cap that replaces one of 0 or less (S4-45)."""


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one run may use; checked between steps, so that a step that has begun is completed.

    Raises:
        ConfigurationError: a field is unknown, or a limit is not a finite number above 0.
    """

    tokens: int | None = None
    """Tokens read and written, including those of sub-agents; None: no limit."""
    cost_usd: float | None = None
    """Dollars; None: no limit. Has no effect if the model's price is unknown."""
    seconds: float | None = None
    """Duration of the run without the time spent waiting for the user; None: no limit."""

    def __post_init__(self) -> None:
        for name in ("tokens", "cost_usd", "seconds"):
            expect_number(f"Budget.{name}", getattr(self, name), more_than=True, optional=True)

    def overrun(self, tally: RunTally) -> str | None:
        """Return the limit that was reached, as text; None if none was."""
        usage = tally.usage
        # What a cache serves counts as well: it is in the window and on the bill.
        tokens = usage.context_tokens + usage.output_tokens
        # A user who thinks for an hour must not end the run by it.
        seconds = (tally.elapsed_ms - tally.approval_ms) / 1000
        if self.tokens is not None and tokens >= self.tokens:
            return f"{tokens} tokens of {self.tokens}"
        if self.cost_usd is not None and tally.cost is not None and tally.cost >= self.cost_usd:
            return f"${tally.cost:.2f} of ${self.cost_usd:.2f}"
        if self.seconds is not None and seconds >= self.seconds:
            return f"{seconds:.0f} s of {self.seconds:g} s"
        return None


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class RepetitionLimits:
    """Limits on a run that makes the same calls with the same results.

    Raises:
        ConfigurationError: a field is unknown, or a number is not whole or contradicts another.
    """

    nudge_at: int = 3
    """Repetitions after which the model gets a message."""
    stop_at: int = 6
    """Repetitions after which the run ends."""

    def __post_init__(self) -> None:
        for name in ("nudge_at", "stop_at"):
            expect_whole(f"RepetitionLimits.{name}", getattr(self, name), 0)
        if not 1 < self.nudge_at < self.stop_at:
            raise ConfigurationError(
                f"repetition limits need 1 < nudge_at < stop_at, got {self.nudge_at} and {self.stop_at}"
            )


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The schedule of attempts after failures of the model: `first_wait`, twice that, … up to `longest_wait`.

    All times are in seconds. The loop retries itself, so that the user sees each retry and can end the wait. The
    schedule is not random: the same failures give the same waits.

    Raises:
        ConfigurationError: a field is unknown, or its value is not a valid number of attempts or seconds.
    """

    max_attempts: int = 10
    """Attempts in all, the first included."""
    max_silent_attempts: int = 3
    """Attempts if the server sends nothing: each takes minutes."""
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_retry_after: float = 120.0
    """If a server asks for a longer wait, its error is shown instead."""

    def __post_init__(self) -> None:
        for name in ("max_attempts", "max_silent_attempts"):
            expect_whole(f"RetryPolicy.{name}", getattr(self, name), 1)
        for name in ("first_wait", "longest_wait", "longest_retry_after"):
            expect_seconds(f"RetryPolicy.{name}", getattr(self, name), or_zero=True)

    def most_attempts(self, failure: ProviderError) -> int:
        """Return the most attempts, the first included, for a request that failed like this."""
        # A status other than 200 is an answer, if only one of a gateway.
        is_silence = failure.kind == "timeout" and failure.status in (None, 200)
        return min(self.max_attempts, self.max_silent_attempts) if is_silence else self.max_attempts

    def wait_before(self, attempt: int, failure: ProviderError) -> float | None:
        """Return the seconds to wait before attempt number `attempt` (from 2) after `failure`; None: do not try again.

        A request that the server refused is never sent again, nor one whose `retry-after` exceeds
        `longest_retry_after`; a shorter one is respected.
        """
        if not failure.retryable or attempt > self.most_attempts(failure):
            return None
        # No random part: one user's agents are too few to need it, and tests see the same waits.
        wait = min(self.first_wait * 2.0 ** (attempt - 2), self.longest_wait)
        if failure.retry_after is None:
            return wait
        if failure.retry_after > self.longest_retry_after:
            return None
        return max(wait, failure.retry_after)


class RequestDelay:
    """Time before which no request is sent, because of a rate limit that others met. An agent shares it with its
    sub-agents."""

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
        # A loop, because the delay may grow while this waits.
        while left := self.left:
            await asyncio.sleep(left)
