"""Messages about answers that are empty, refused or cut off: one sentence each for every front end.

`providers/provider_failures.py` has the messages about requests that failed.
"""

from tui_agent.execution.contained_calls import Crash
from tui_agent.execution.pipeline.tool_execution import ToolExecution
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import AssistantMessage
from tui_agent.protocol.tool import ToolResult

from .run_report import Ending

LENGTH_HINT = " If the conversation is too long for this server, /compact may help."
"""Added to a refusal without a known cause if the conversation is large."""

UNCLAIMED_RESULT = 2_000
"""Most characters of the result in the notice about a call that no response contains."""


class EmptyAnswerError(ProviderError):
    """The answer has no text and no call, at most reasoning."""

    def __init__(self) -> None:
        super().__init__(
            "The model gave an empty answer twice. The conversation is kept; send another message.",
            kind="bad_response",
            summary="The model gave an empty answer",
        )


def missing_stop_reason() -> ProviderError:
    """Return the error of an answer that ended without a stop reason."""
    summary = "The model's answer broke off without a reason"
    return ProviderError(f"{summary}. The conversation is kept; try again.", kind="stream_cut", summary=summary)


def full_window() -> ProviderError:
    """Return the error of an answer that the end of the model's context window cut off."""
    summary = "The conversation is longer than the model's context window"
    advice = "remove its largest messages or start a new one"
    return ProviderError(
        f"{summary}. The conversation is kept; {advice}.", kind="context_exceeded", status=200, summary=summary
    )


def ending_of(answer: AssistantMessage, detail: str) -> Ending | None:
    """Return why a run must end after this answer; None if it may continue.

    Args:
        answer: the complete answer.
        detail: the provider's explanation of the stop reason; empty if there is none.
    """
    match answer.stop_reason:
        case "refusal":
            why = f": {' '.join(detail.split()).rstrip('.')}" if detail.strip() else ""
            error = f"The model declined to answer{why}. The conversation is kept; rephrase your request."
            return Ending("error", error=error)
        case _:
            return None


def output_limit_text(answer: AssistantMessage) -> str:
    """Return the warning about an answer that reached the output limit."""
    rest = (
        "Its calls that have not started do not run; the model is asked to repeat them."
        if answer.tool_calls
        else "The text so far is kept; ask the model to continue."
    )
    return f"The answer was cut off at the model's output limit. {rest}"


def unfinished_text(detail: str) -> str:
    """Return the warning about an answer that ended for an unknown reason."""
    reason = f": {' '.join(detail.split()).rstrip('.')}" if detail.strip() else ""
    return f"The model stopped before the usual end of an answer{reason}. The answer may not be whole."


def unclaimed_text(execution: ToolExecution) -> str:
    """Return the notice about a call that ran although no response contains it."""
    name, summary = execution.tool.name, execution.tool.summarise(execution.arguments)
    answer = execution.answer
    result = (
        answer.text if isinstance(answer, ToolResult | Crash) else "It was stopped and may have done part of its work."
    )
    if len(result) > UNCLAIMED_RESULT:
        result = f"{result[:UNCLAIMED_RESULT]} [… {len(result) - UNCLAIMED_RESULT} more characters]"
    return (
        "A response of yours broke off after it had made a call that ran all the same. No later call has its result, "
        "even if you made the same call again. What it changed is still changed. "
        f"The call: {f'{name} {summary}'.strip()}\nIts result: {result}"
    )
