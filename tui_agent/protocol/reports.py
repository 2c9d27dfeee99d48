"""Reports of runs, steps and calls (S4-10, S4-11, S4-12), and the errors for runs that ended early.

The errors are not in `errors`, because report and errors refer to each other.
"""

from typing import Literal, Self

from pydantic import Field

from .errors import TuiAgentError
from .messages import FrozenModel, JsonObject, TrustedModel, Usage

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
"""Reason why a run ended. A run that a tool result ended is `done`; `terminated` occurs in records of other engines."""

INVALID_OUTPUT = "invalid_output"
"""`AgentRunReport.error_kind` of a run whose final answer does not fit the output type, even after a second attempt."""

MetricValue = float | str | bool


class Metric(FrozenModel):
    """A value that a tool measured about its work."""

    value: MetricValue
    type: str = "value"


class ToolCallReport(TrustedModel):
    """Report of one call."""

    call_id: str
    tool_name: str
    arguments: JsonObject
    status: str
    """One of `events.ToolStatus`."""
    result_size_bytes: int = 0
    latency_ms: float = 0.0
    """Milliseconds of execution, without waiting in the queue and for approval."""
    skipped: bool = False
    error: str | None = None
    metrics: dict[str, Metric] = Field(default_factory=dict)


class StepReport(TrustedModel):
    """Report of one model response and its tool calls."""

    index: int
    type: Literal["initial", "tool_followup"]
    llm_latency_ms: float = 0.0
    usage: Usage = Usage()
    finish_reason: str = ""
    tool_calls: tuple[ToolCallReport, ...] = ()
    tool_total_ms: float = 0.0


class AgentRunReport(FrozenModel):
    """Report of one run."""

    id: str
    model: str
    started_at: int
    """Milliseconds since the epoch."""
    completed_at: int
    total_ms: float
    """Measured on the monotonic clock."""
    reason: RunReason
    user_message: str
    """Text of the input; its images are only in the conversation."""
    final_text: str
    error: str | None = None
    error_kind: str | None = None
    """`errors.ProviderErrorKind` if the model failed, `INVALID_OUTPUT`, or None."""
    taken_up: tuple[ToolCallReport, ...] = ()
    """Calls of an earlier run that this run resumed before its first step, such as one that waited for approval when
    the process ended."""
    steps: tuple[StepReport, ...] = ()
    step_count: int = 0
    tool_call_count: int = 0
    total_usage: Usage = Usage()
    cost_usd: float | None = None
    """Estimated cost in US dollars; None if the model's price is unknown."""
    total_llm_time_ms: float = 0.0
    total_tool_time_ms: float = 0.0
    total_approval_wait_ms: float = 0.0

    def raise_for_reason(self) -> Self:
        """Return this report if the run completed, else raise the error for its reason.

        | reason | error |
        |---|---|
        | `done`, `terminated` | none |
        | `error` | `RunFailedError`; `OutputError` if the final answer does not fit the output type |
        | `guardrail` | `GuardrailTrippedError` |
        | `max_steps`, `budget`, `loop_detected` | `RunLimitError` |
        | `input_rejected` | `InputRefusedError` |
        | `stopped`, `aborted` | `RunInterruptedError` |

        Raises:
            RunError: see the table; `error.report` is this report.
        """
        error = _ERRORS.get(self.reason)
        if self.error_kind == INVALID_OUTPUT:
            error = OutputError
        if error is not None:
            raise error(self)
        return self


class RunError(TuiAgentError):
    """A run that ended early; raised by `AgentRunReport.raise_for_reason`."""

    def __init__(self, report: AgentRunReport, text: str = "") -> None:
        super().__init__(text or _message(report))
        self.report = report
        """Report of the run up to its end."""


class RunFailedError(RunError):
    """A request to the model failed or was declined, or a tool's failure ended the run; see `report.error_kind`."""


class OutputError(RunFailedError):
    """The final answer does not fit the output type; `report.final_text` is the answer as the model wrote it."""


class GuardrailTrippedError(RunError):
    """A guardrail ended the run; `report.final_text` is the reason."""


class RunLimitError(RunError):
    """The run reached its step cap or its budget, or repeated itself; another run continues it."""


class InputRefusedError(RunError):
    """An input filter refused the message; nothing was sent."""


class RunInterruptedError(RunError):
    """The run was stopped or aborted from outside."""


_SENTENCES: dict[RunReason, str] = {
    "done": "the run ended",
    "terminated": "a tool ended the run",
    "error": "the run failed",
    "guardrail": "a guardrail ended the run",
    "max_steps": "the run reached its step limit",
    "budget": "the run used up its budget",
    "loop_detected": "the run repeated itself",
    "input_rejected": "an input filter refused the message",
    "stopped": "the run was stopped",
    "aborted": "the run was aborted",
}


def _message(report: AgentRunReport) -> str:
    """Return why the run ended, with the reason of the error or the figures of the limit."""
    text, usage = _SENTENCES[report.reason], report.total_usage
    if report.error:
        return f"{text}: {report.error}"
    match report.reason:
        case "guardrail" | "input_rejected":
            return f"{text}: {report.final_text}" if report.final_text else text
        case "max_steps":
            return f"{text} ({report.step_count})"
        case "budget":
            cost = "" if report.cost_usd is None else f", ${report.cost_usd:.2f}"
            waited = report.total_approval_wait_ms
            seconds = (report.total_ms - waited) / 1000
            return f"{text} ({usage.context_tokens + usage.output_tokens} tokens{cost}, {seconds:.0f} s)"
        case _:
            return text


_ERRORS: dict[RunReason, type[RunError]] = {
    "error": RunFailedError,
    "guardrail": GuardrailTrippedError,
    "max_steps": RunLimitError,
    "budget": RunLimitError,
    "loop_detected": RunLimitError,
    "input_rejected": InputRefusedError,
    "stopped": RunInterruptedError,
    "aborted": RunInterruptedError,
}
"""Errors by reason; a run with any other reason completed."""
