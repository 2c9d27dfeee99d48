"""The schedule of attempts after failures of the model.

The loop retries itself, so that the user sees each retry and can end the wait. The schedule is not random: the same
failures give the same waits.
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
    """If a server asks for a longer wait, its error is shown instead."""

    def __post_init__(self) -> None:
        expect_whole("RetryPolicy.max_attempts", self.max_attempts, 1)
        for name in ("first_wait", "longest_wait", "longest_retry_after"):
            expect_seconds(f"RetryPolicy.{name}", getattr(self, name), or_zero=True)

    def wait_before(self, attempt: int, failure: ProviderError) -> float | None:
        """Seconds to wait before attempt number `attempt` (from 2) after `failure`; None: do not try again.

        A request that the server refused is never sent again. A `retry-after` of the server is respected.
        """
        if not failure.retryable or attempt > self.max_attempts:
            return None
        wait = min(self.first_wait * 2.0 ** (attempt - 2), self.longest_wait)
        if failure.retry_after is None:
            return wait
        if failure.retry_after > self.longest_retry_after:
            return None
        return max(wait, failure.retry_after)
