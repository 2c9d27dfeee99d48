"""What a run leaves behind: one report a run, a step, a call (S4-10, S4-11, S4-12)."""

from typing import Literal

from pydantic import Field

from .messages import JsonObject, Usage, Word

RunReason = Literal[
    "done",
    "stopped",
    "aborted",
    "error",
    "guardrail",
    "max_steps",
    "budget",
    "loop_detected",
    "input_rejected",
    "terminated",
]
"""Why a run ended; one that its results asked to end is `done`, and `terminated` is kept for other engines' records."""

MetricValue = float | str | bool


class Metric(Word):
    """One value a tool noted about its own work."""

    value: MetricValue
    type: str = "value"


class ToolCallReport(Word):
    """One call, as it ended."""

    call_id: str
    tool_name: str
    arguments: JsonObject
    status: str
    """One of `events.ToolStatus`."""
    result_size_bytes: int = 0
    latency_ms: float = 0.0
    """Milliseconds of execution, without queueing and approval."""
    skipped: bool = False
    error: str | None = None
    metrics: dict[str, Metric] = Field(default_factory=dict)


class StepReport(Word):
    """One model response and its tool calls."""

    index: int
    type: Literal["initial", "tool_followup"]
    llm_latency_ms: float = 0.0
    usage: Usage = Usage()
    finish_reason: str = ""
    tool_calls: tuple[ToolCallReport, ...] = ()
    tool_total_ms: float = 0.0


class AgentRunReport(Word):
    """One user input handled to its end."""

    id: str
    model: str
    started_at: int
    """Milliseconds since the epoch."""
    completed_at: int
    total_ms: float
    """Measured on the monotonic clock."""
    reason: RunReason
    user_message: str
    """The text that was given; pictures of the input stand in the conversation alone."""
    final_text: str
    error: str | None = None
    error_kind: str | None = None
    """`errors.ProviderErrorKind` when the model failed; decides whether a caller may try again later."""
    taken_up: tuple[ToolCallReport, ...] = ()
    """Calls of an earlier run's last answer that this run took up before its first step, such as one that waited for a
    person when the process ended."""
    steps: tuple[StepReport, ...] = ()
    step_count: int = 0
    tool_call_count: int = 0
    total_usage: Usage = Usage()
    cost_usd: float | None = None
    """Estimated cost; None where the model's price is not known."""
    total_llm_time_ms: float = 0.0
    total_tool_time_ms: float = 0.0
    total_approval_wait_ms: float = 0.0
