"""Settings for the limits of a run: its budget, and how often it may repeat itself. `run_limits` enforces them."""

from dataclasses import dataclass

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_number, expect_whole, refuse_unknown_fields

from .run_report import RunTally


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
        tokens = usage.context_tokens + usage.output_tokens
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
