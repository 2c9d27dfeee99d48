"""Which failures of the model are worth another attempt, and after how long.

Retries are the loop's own so that a person sees each one and can end the wait. The schedule has no chance in it: the
same failures give the same waits.
"""

from dataclasses import dataclass

from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.value_checks import expect_seconds, expect_whole, refuse_unknown_fields


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """An exponential schedule: `first_wait`, twice that, … up to `longest_wait`, all in seconds.

    Raises:
        ConfigurationError: a field is unknown, or its value is not a valid number of attempts or seconds.
    """

    max_attempts: int = 10
    """Attempts in all, the first included."""
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_retry_after: float = 120.0
    """A server that asks for more patience than this gets its error shown instead."""

    def __post_init__(self) -> None:
        expect_whole("RetryPolicy.max_attempts", self.max_attempts, 1)
        for name in ("first_wait", "longest_wait", "longest_retry_after"):
            expect_seconds(f"RetryPolicy.{name}", getattr(self, name), or_zero=True)

    def wait_before(self, attempt: int, failure: ProviderError) -> float | None:
        """Seconds to wait before attempt number `attempt` (from 2) after `failure`; None: do not try again.

        What was refused as such is never sent again; what the server asks for with `retry-after` is kept to.
        """
        if not failure.retryable or attempt > self.max_attempts:
            return None
        wait = min(self.first_wait * 2.0 ** (attempt - 2), self.longest_wait)
        if failure.retry_after is None:
            return wait
        if failure.retry_after > self.longest_retry_after:
            return None
        return max(wait, failure.retry_after)
