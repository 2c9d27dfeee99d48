"""Messages about answers that are empty, refused or cut off: one sentence each for every front end.

`providers/provider_failures.py` has the messages about requests that failed.
"""

from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import AssistantMessage

from .run_report import Ending


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
        case "model_context_window_exceeded":
            error = (
                "The conversation is longer than the model's context window. The conversation is kept; remove its "
                "largest messages or start a new one."
            )
            return Ending("error", error=error, error_kind="context_exceeded")
        case _:
            return None


def output_limit_text(answer: AssistantMessage) -> str:
    """Return the warning about an answer that reached the output limit."""
    rest = (
        "Its calls do not run; the model is asked to repeat them."
        if answer.tool_calls
        else "The text so far is kept; ask the model to continue."
    )
    return f"The answer was cut off at the model's output limit. {rest}"
