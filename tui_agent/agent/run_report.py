"""The usage and duration of a run, and its report (S4-10, S4-11, S4-12)."""

import time
from dataclasses import dataclass, field

from tui_agent.execution import ToolExecutionResult
from tui_agent.protocol.messages import Usage, now_ms, share_field_sets
from tui_agent.protocol.reports import AgentRunReport, RunReason, StepReport, ToolCallReport
from tui_agent.protocol.tool_result import FINAL_TEXT

from .event_publisher import ApprovalWaitClock


@dataclass(frozen=True, slots=True)
class Ending:
    """The reason why a run ended, and its message."""

    reason: RunReason
    text: str = ""
    """Replaces the last answer as the run's final text if it is not empty."""
    error: str | None = None
    error_kind: str | None = None


def ending_of_calls(calls: ToolExecutionResult) -> Ending | None:
    """Return why the run ends after these calls; None: none of them demands it."""
    if calls.halted == "guardrail":
        return Ending("guardrail", text=calls.halted_why)
    if calls.halted is not None:
        return Ending(calls.halted, error=calls.halted_why)
    if not calls.terminate:
        return None
    texts = [(result.details or {}).get(FINAL_TEXT, "") for result in calls.tool_results]
    return Ending("done", text=next((str(text) for text in texts if text), ""))


@dataclass(slots=True)
class RunTally:
    """The sums of one run so far."""

    run_id: str
    model: str
    user_message: str
    waits: ApprovalWaitClock
    started_at: int = field(default_factory=now_ms)
    started_mono: float = field(default_factory=time.monotonic)
    taken_up: tuple[ToolCallReport, ...] = ()
    steps: list[StepReport] = field(default_factory=list[StepReport])
    usage: Usage = field(default_factory=Usage)
    """All usage, including that of discarded answers."""
    cost: float | None = None
    """Dollars; None if no price is known."""
    model_ms: float = 0.0
    tool_ms: float = 0.0
    final_text: str = ""
    _waited_before: float = 0.0

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Count one answer's tokens, kept or not, and its cost in dollars; None: unknown."""
        self.usage = self.usage + usage
        self.cost = added_cost(self.cost, cost)

    def __post_init__(self) -> None:
        self._waited_before = self.waits.ms

    def add_resumed_calls(self, calls: tuple[ToolCallReport, ...]) -> None:
        """Count calls of an earlier run that this run resumed."""
        self.taken_up = calls
        self.tool_ms += sum(call.latency_ms for call in calls)

    def add_step(self, step: StepReport) -> None:
        """Count a step that has ended."""
        share_field_sets(step)
        self.steps.append(step)
        self.model_ms += step.llm_latency_ms
        self.tool_ms += step.tool_total_ms

    @property
    def tool_calls(self) -> int:
        """Number of calls so far, including resumed ones."""
        return len(self.taken_up) + sum(len(step.tool_calls) for step in self.steps)

    @property
    def approval_ms(self) -> float:
        """Milliseconds spent waiting for the user, by sub-agents, too."""
        return self.waits.ms - self._waited_before

    @property
    def elapsed_ms(self) -> float:
        """Milliseconds since the run began."""
        return (time.monotonic() - self.started_mono) * 1000

    def report(self, ending: Ending) -> AgentRunReport:
        """Return the report of the run."""
        return AgentRunReport(
            id=self.run_id,
            model=self.model,
            started_at=self.started_at,
            completed_at=now_ms(),
            total_ms=self.elapsed_ms,
            reason=ending.reason,
            user_message=self.user_message,
            final_text=ending.text or self.final_text,
            error=ending.error,
            error_kind=ending.error_kind,
            taken_up=self.taken_up,
            steps=tuple(self.steps),
            step_count=len(self.steps),
            tool_call_count=self.tool_calls,
            total_usage=self.usage,
            cost_usd=self.cost,
            total_llm_time_ms=self.model_ms,
            total_tool_time_ms=self.tool_ms,
            total_approval_wait_ms=self.approval_ms,
        )


def added_cost(total: float | None, cost: float | None) -> float | None:
    """Return the sum of two costs, either of which may be unknown (None); None only if both are."""
    if total is None or cost is None:
        return cost if total is None else total
    return total + cost
