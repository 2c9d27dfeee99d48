"""Outcomes of calls, and the texts that the model reads about calls without a result of their own.

A refusal is the outcome of a call that never ran; no stage of the pipeline raises to refuse one.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.callbacks import Crash
from tui_agent.protocol.cancellation import NOT_BEGUN, PROGRAM_QUIT
from tui_agent.protocol.errors import ConfigurationError, OperationCancelledError, ToolError
from tui_agent.protocol.events import MessageEnded, MessageStarted, ToolEnded, ToolQueued, ToolStatus
from tui_agent.protocol.messages import TextBlock, ToolCall, ToolResultMessage
from tui_agent.protocol.permissions import PermissionDecision
from tui_agent.protocol.reports import RunReason
from tui_agent.protocol.tool import ToolResult

SkipReason: TypeAlias = Literal["steering", "notice", "cancelled", "rejected", "failed", "sibling"]
"""Reason for which a valid call is not run."""

HOOK_SKIP_TEXT = "Tool call skipped by before_tool_execution hook"
"""Text required by S0-26."""

LISTED_TOOLS = 40
"""Largest number of tools whose names are all listed when the model calls an unknown one."""

_SIBLING_FAILED = "Cancelled: another call of the same message failed"
_HALF_DONE = "A part of its work may be done."

_SKIP_TEXTS: dict[SkipReason, tuple[ToolStatus, str]] = {
    "steering": (
        "skipped_steering",
        "Skipped due to queued user message. Not run: the user sent a message first; read it, then decide whether this "
        "call is still wanted.",
    ),
    "notice": (
        "skipped_steering",
        "Skipped due to a system notice. Not run: the notice came first and is not from the user; read it, then decide "
        "whether this call is still wanted.",
    ),
    "cancelled": ("cancelled", "Cancelled. The call was not run."),
    "rejected": ("skipped_user", "Not run: the user rejected another call of the same message."),
    "failed": ("cancelled", "Not run: another call of the same message failed and the run ends."),
    "sibling": ("cancelled", f"{_SIBLING_FAILED}. The call was not run."),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of one call."""

    status: ToolStatus
    result: ToolResult
    error_kind: str | None = None
    traceback: str | None = None
    halts: RunReason | None = None
    """Reason for which the whole run ends once the calls of this message are answered."""
    why: str = ""
    """Explanation of that end; empty if the result explains it."""
    given: bool = False
    """True if a hook or the user supplied the result; like a tool's, it passes stages 12 and 13."""
    whole_size: int | None = None
    """Bytes of the whole result if this one was truncated; None: it is whole."""
    persisted_path: str | None = None

    def with_result(self, result: ToolResult) -> "Outcome":
        """Return this outcome with another result.

        `ok` and `error` follow the new result's error flag. A call that did not end by itself, such as one that timed
        out, stays an error.
        """
        status = self.status
        if status in ("ok", "error"):
            status = "error" if result.is_error else "ok"
        elif status != "overridden" and not self.given and not result.is_error:
            result = result.model_copy(update={"is_error": True})
        # The traceback may contain what the new result leaves out.
        return replace(self, status=status, result=result, traceback=None)


def failure(status: ToolStatus, text: str, error_kind: str | None = None) -> Outcome:
    """Return an outcome whose result is one error text; `error_kind` classifies it for programs, None: not at all."""
    return Outcome(status, ToolResult.of_text(text, is_error=True), error_kind)


def overridden(result: ToolResult) -> Outcome:
    """Return the outcome of a call whose result a hook or the user supplied."""
    return Outcome("overridden", result, given=True)


def skipped(reason: SkipReason) -> Outcome:
    """Return the outcome of a call that is not run for a reason outside the call (S0-21)."""
    status, text = _SKIP_TEXTS[reason]
    return failure(status, text, f"skipped_{reason}")


def skip_tool_call(
    call: ToolCall, bus: Publisher, *, reason: SkipReason = "steering", index: int = 0
) -> ToolResultMessage:
    """Answer one call with an error result that says why it was skipped (S0-21, S2-13), without any hook (S0-22).

    Publishes `tool.queued` < `tool.ended` < `message.started` < `message.ended`. Not for calls that are passed to
    `execute_tool_calls`, which skips calls by itself.

    Raises:
        ConfigurationError: the reason is unknown.
    """
    if reason not in get_args(SkipReason):
        raise ConfigurationError(f"unknown reason {reason!r}; use one of {', '.join(get_args(SkipReason))}")
    outcome = skipped(reason)
    message = ToolResultMessage(
        call_id=call.id, tool_name=call.name, content=outcome.result.content, is_error=outcome.result.is_error
    )
    bus.publish(ToolQueued(call_id=call.id, name=call.name, args_raw=call.arguments, index=index))
    bus.publish(
        ToolEnded(
            call_id=call.id,
            name=call.name,
            index=index,
            status=outcome.status,
            is_error=message.is_error,
            content=message.content,
            error_kind=outcome.error_kind,
        )
    )
    bus.publish(MessageStarted(message_id=message.id, role="tool_result", call_id=call.id))
    bus.publish(MessageEnded(message_id=message.id, message=message))
    return message


def sibling_failed(name: str, call_id: str, *, started: bool) -> Outcome:
    """Return the outcome of a call stopped because another one failed whose tool declares the others pointless.

    Args:
        name: the tool of the call that failed.
        call_id: the call that failed.
        started: True if the stopped call had started.
    """
    what, kind = (_HALF_DONE, "cancelled") if started else ("The call was not run.", "skipped_sibling")
    return failure("cancelled", f"{_SIBLING_FAILED}: {name} ({call_id}). {what}", kind)


def skipped_on_request(status: ToolStatus, text: str, result: ToolResult | None, *, is_error: bool) -> Outcome:
    """Return the outcome of a call that a hook or the user skipped; a supplied result is not an error (S4-58).

    Args:
        status: who skipped it.
        text: the result for the model if none was supplied.
        result: the supplied result; None: `text` is the result.
        is_error: True if `text` is an error.
    """
    if result is not None:
        return replace(overridden(result), status=status)
    return Outcome(status, ToolResult.of_text(text, is_error=is_error))


def not_found(name: str, known: tuple[str, ...], nearest: tuple[str, ...], *, explain: bool) -> Outcome:
    """Return the outcome of a call of an unknown tool; after the text of S0-38 it suggests names to the model."""
    text = f"Tool {name} not found"
    if explain and not known:
        text += ". There are no tools."
    elif explain and len(known) <= LISTED_TOOLS:
        text += f". Available tools: {', '.join(known)}."
    elif explain and nearest:
        text += f". Closest names: {', '.join(nearest)}."
    elif explain:
        text += f". None of the {len(known)} tools has a similar name."
    return failure("not_found", text, "not_found")


def invalid(text: str) -> Outcome:
    """Return the outcome of a call with invalid arguments (S1-25, S3-23)."""
    return failure("invalid", text, "invalid_arguments")


def output_limit(*, started: bool = False) -> Outcome:
    """Return the outcome of a call whose message was cut off; `started` if it ran already."""
    what = f"Stopped while it ran. {_HALF_DONE} The" if started else "Not run: the"
    return failure(
        "output_limit",
        f"{what} response hit the output token limit, so the arguments of this call may be incomplete. Make the "
        "call again, with shorter arguments or in several steps.",
        "output_limit",
    )


def denied_by_policy(decision: PermissionDecision) -> Outcome:
    """Return the outcome of a call that the permission policy denies (S1-22)."""
    return failure("denied_policy", f"Permission denied: {decision.reason}", f"denied_{decision.source}")


def denied_by_hook(reason: str, error_kind: str = "denied_hook") -> Outcome:
    """Return the outcome of a call that a hook denies, with the hook's own text (S3-27)."""
    return failure("denied_hook", reason, error_kind)


def not_recorded(why: str) -> Outcome:
    """Return the outcome of a call that did not run because its start could not be recorded first."""
    text = f"Not run: it could not be recorded first ({why.rstrip('.')})."
    return failure("error", text, "not_recorded")


def timed_out(name: str, seconds: float) -> Outcome:
    """Return the outcome of a call that exceeded its time limit (S1-24, S3-25)."""
    return failure(
        "timeout", f"Tool {name} timed out after {seconds:g} s. It may have done a part of its work.", "timeout"
    )


def crashed(name: str, crash: Crash, traceback: str) -> Outcome:
    """Return the outcome of a tool that raised: its message, and its traceback as the option says (S0-37).

    `traceback` is the option `error_traceback`: `details` keeps it from the model, `model` shows it, `none` drops it.
    """
    error = crash.error
    if isinstance(error, asyncio.CancelledError):
        return failure("cancelled", f"Tool {name} cancelled itself.", "cancelled")
    if isinstance(error, OperationCancelledError):
        return failure("cancelled", crash.text, "cancelled")
    if isinstance(error, ToolError):
        return failure("error", crash.text, "tool_error")
    outcome = failure("error", crash.text, type(error).__name__)
    if traceback == "none":
        return outcome
    text = f"{crash.text}\n\n{crash.trace}" if traceback == "model" else crash.text
    result = ToolResult.of_text(text, is_error=True, details={"traceback": crash.trace})
    return Outcome("error", result, outcome.error_kind, crash.trace)


def cancelled(reason: str, *, started: bool) -> Outcome:
    """Return the outcome of a call that was cancelled while it waited or, if `started`, ran."""
    words = f"Cancelled: {reason.rstrip('.')}." if reason and reason != "cancelled" else "Cancelled."
    what = _HALF_DONE if started else "The call was not run."
    kind = NOT_BEGUN if reason.startswith(PROGRAM_QUIT) and not started else "cancelled"
    return failure("cancelled", f"{words} {what}", kind)


def changes_waiting(result: ToolResult) -> Outcome:
    """Return the outcome of a call that ran in a trial, and whose changes wait for a resumed session to decide."""
    text = (
        "The program exited before anyone decided on what this command changed in its trial. None of it is in the "
        "workspace."
    )
    return with_partial(failure("cancelled", text, NOT_BEGUN), result)


def set_aside(reason: str) -> Outcome:
    """Return the outcome of a call whose message was discarded while it ran; its work is kept for the next one."""
    return failure("cancelled", f"Cancelled: {reason}. Its work is kept for the next response.", "set_aside")


def interrupted_by_steering() -> Outcome:
    """Return the outcome of a running call that yielded to a message (mode `interrupt`)."""
    return failure(
        "interrupted",
        "Interrupted: the user sent a message while this call ran. A part of its work may be done.",
        "interrupted_steering",
    )


def interrupted(text: str) -> Outcome:
    """Return the outcome of a call whose effect is unknown."""
    return failure("interrupted", text, "interrupted")


def lost() -> Outcome:
    """Return the outcome of a call that ran, but whose result can no longer be shown."""
    return interrupted("The call ran to its end, but the run was cancelled before its result could be delivered.")


def left_running(outcome: Outcome) -> Outcome:
    """Return the outcome of an abandoned call whose thread, which nothing can stop, may still be working."""
    text = f"{outcome.result.text} Its function runs in a thread that cannot be stopped and may still be working."
    return replace(outcome, result=ToolResult.of_text(text, is_error=True))


def with_partial(outcome: Outcome, partial: ToolResult) -> Outcome:
    """Return the outcome of a call that was stopped and still returned a result, which the model also reads.

    An empty result changes nothing. The result cannot end the run, because the call did not end by itself.
    """
    if not partial.content and partial.details is None:
        return outcome
    head = outcome.result.text + ("\nUntil then it returned:" if partial.content else "")
    content = (TextBlock(text=head), *partial.content)
    return replace(
        outcome, result=partial.model_copy(update={"content": content, "is_error": True, "terminate": False})
    )
