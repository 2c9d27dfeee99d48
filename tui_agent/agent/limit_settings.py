"""What one run may use, and how often it may do the same again: limits checked between steps (engine §4, step 2)."""

from dataclasses import dataclass

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_number, expect_whole, refuse_unknown_fields

from .run_report import RunTally


@refuse_unknown_fields
@dataclass(frozen=True, slots=True)
class Budget:
    """Most that one run may use; looked at before each step, so that a step that was begun is finished.

    Raises:
        ConfigurationError: a field is unknown, or a limit is not a finite number above 0 (P39).
    """

    tokens: int | None = None
    """Tokens read and written, those of sub-agents included; None: no limit."""
    cost_usd: float | None = None
    """Dollars; None: no limit. Counts nothing where the model's price is not known."""
    seconds: float | None = None
    """Time of the whole run, waiting for a person excluded; None: no limit."""

    def __post_init__(self) -> None:
        for name in ("tokens", "cost_usd", "seconds"):
            expect_number(f"Budget.{name}", getattr(self, name), more_than=True, optional=True)

    def overrun(self, tally: RunTally) -> str | None:
        """Which limit was reached, in words; None while there is something left of each."""
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
    """How often a run may make the same calls with the same results before something is done about it.

    Raises:
        ConfigurationError: a field is unknown, or a number is not whole or contradicts another.
    """

    nudge_at: int = 3
    """At so many rounds of the same the model is told."""
    stop_at: int = 6
    """At so many the run ends."""

    def __post_init__(self) -> None:
        for name in ("nudge_at", "stop_at"):
            expect_whole(f"RepetitionLimits.{name}", getattr(self, name), 0)
        if not 1 < self.nudge_at < self.stop_at:
            raise ConfigurationError(
                f"repetition limits need 1 < nudge_at < stop_at, got {self.nudge_at} and {self.stop_at}"
            )
