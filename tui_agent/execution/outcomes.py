"""How a call can end, as values, and every word the model reads about a call that gave no result of its own.

A refusal is an outcome of a call that never ran. No stage of the pipeline raises to say no.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from tui_agent.protocol.cancellation import NOT_BEGUN, PROGRAM_QUIT
from tui_agent.protocol.events import ToolStatus
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.permissions import PermissionDecision
from tui_agent.protocol.reports import RunReason
from tui_agent.protocol.tool import ToolResult

SkipReason: TypeAlias = Literal["steering", "notice", "cancelled", "rejected", "failed", "sibling"]
"""Why a call is not run although nothing is wrong with it (C9, C10)."""

HOOK_SKIP_TEXT = "Tool call skipped by before_tool_execution hook"
"""Literal text of S0-26."""

LISTED_TOOLS = 40
"""Most tools whose names are listed for an unknown one (C21)."""

_SIBLING_FAILED = "Cancelled: another call of the same message failed."
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
    "sibling": ("cancelled", f"{_SIBLING_FAILED} The call was not run."),
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call ended."""

    status: ToolStatus
    result: ToolResult
    error_kind: str | None = None
    traceback: str | None = None
    halts: RunReason | None = None
    """Reason for which the whole run ends after this message's calls were answered."""
    why: str = ""
    """What is said of that end, where the result is not it."""
    given: bool = False
    """Whether a hook or a person gave the result, instead of the tool; like a tool's it passes stages 12 and 13."""
    size_bytes: int = 0
    """Size of the whole result, before it was fitted."""
    truncated: bool = False
    persisted_path: str | None = None

    def with_result(self, result: ToolResult) -> "Outcome":
        """The same outcome with another result. `ok` and `error` follow its error flag; a call that did not end by
        itself, such as one that timed out, stays an error whatever its result says."""
        status = self.status
        if status in ("ok", "error"):
            status = "error" if result.is_error else "ok"
        elif status != "overridden" and not self.given and not result.is_error:
            result = result.model_copy(update={"is_error": True})
        # A traceback tells what the result no longer does.
        return replace(self, status=status, result=result, traceback=None)


def failure(status: ToolStatus, text: str, error_kind: str | None = None) -> Outcome:
    """An outcome that tells the model one error text."""
    return Outcome(status, ToolResult.of_text(text, is_error=True), error_kind)


def answered(result: ToolResult) -> Outcome:
    """The outcome of a tool that returned."""
    return Outcome("error" if result.is_error else "ok", result, "tool_error" if result.is_error else None)


def overridden(result: ToolResult) -> Outcome:
    """A call that got its result from a hook or a person."""
    return Outcome("overridden", result, given=True)


def skipped(reason: SkipReason) -> Outcome:
    """A call that is not run for a reason that has nothing to do with it (S0-21, C11)."""
    status, text = _SKIP_TEXTS[reason]
    return failure(status, text, f"skipped_{reason}")


def sibling_failed(*, started: bool) -> Outcome:
    """A call that ends because another one failed whose tool says that it makes the others pointless (C26)."""
    outcome = skipped("sibling")
    return failure(outcome.status, f"{_SIBLING_FAILED} {_HALF_DONE}", "cancelled") if started else outcome


def skipped_on_request(status: ToolStatus, text: str, result: ToolResult | None, *, is_error: bool) -> Outcome:
    """A call that a hook or a person skipped; with a result that is its answer, and no error (S4-58, C11)."""
    if result is not None:
        return replace(overridden(result), status=status)
    return Outcome(status, ToolResult.of_text(text, is_error=is_error))


def not_found(name: str, known: tuple[str, ...], nearest: tuple[str, ...], *, explain: bool) -> Outcome:
    """An unknown tool; the text begins as S0-38 has it and helps the model to the right name (C21)."""
    text = f"Tool {name} not found"
    if explain and not known:
        text += ". There are no tools."
    elif explain and len(known) <= LISTED_TOOLS:
        text += f". Available tools: {', '.join(known)}."
    elif explain and nearest:
        text += f". Closest names: {', '.join(nearest)}."
    elif explain:
        text += f". None of the {len(known)} tools has a name like it."
    return failure("not_found", text, "not_found")


def invalid(text: str) -> Outcome:
    """Arguments that do not fit (S1-25, S3-23)."""
    return failure("invalid", text, "invalid_arguments")


def output_limit(*, started: bool = False) -> Outcome:
    """A call of a message that was cut off (C29)."""
    what = f"Stopped while it ran. {_HALF_DONE} The" if started else "Not run: the"
    return failure(
        "output_limit",
        f"{what} response hit the output token limit, so the arguments of this call may be incomplete. Make the "
        "call again, with shorter arguments or in several steps.",
        "output_limit",
    )


def denied_by_policy(decision: PermissionDecision) -> Outcome:
    """A call that the permission policy refuses (S1-22)."""
    return failure("denied_policy", f"Permission denied: {decision.reason}", f"denied_{decision.source}")


def denied_by_hook(reason: str, error_kind: str = "denied_hook") -> Outcome:
    """A call that a hook refuses, in the hook's own words (S3-27)."""
    return failure("denied_hook", reason, error_kind)


def not_recorded(why: str) -> Outcome:
    """A call with effects that could not be put on record before them (P82)."""
    text = f"Not run: it could not be recorded first ({why.rstrip('.')})."
    return failure("error", text, "not_recorded")


def timed_out(name: str, seconds: float) -> Outcome:
    """A call that ran too long (S1-24, S3-25)."""
    return failure(
        "timeout", f"Tool {name} timed out after {seconds:g} s. It may have done a part of its work.", "timeout"
    )


def cancelled(reason: str, *, started: bool) -> Outcome:
    """A call that was taken back while it waited or ran."""
    words = f"Cancelled: {reason.rstrip('.')}." if reason and reason != "cancelled" else "Cancelled."
    what = _HALF_DONE if started else "The call was not run."
    kind = NOT_BEGUN if reason.startswith(PROGRAM_QUIT) and not started else "cancelled"
    return failure("cancelled", f"{words} {what}", kind)


def set_aside(reason: str) -> Outcome:
    """A call whose answer was thrown away while it ran; its work is kept for the answer that is asked for next."""
    return failure("cancelled", f"Cancelled: {reason}. What it does is kept for the next answer.", "set_aside")


def interrupted_by_steering() -> Outcome:
    """A running call that gave way to a message (`interrupt` mode)."""
    return failure(
        "interrupted",
        "Interrupted: the user sent a message while this call ran. A part of its work may be done.",
        "interrupted_steering",
    )


def interrupted(text: str) -> Outcome:
    """A call of which nobody can say what it did."""
    return failure("interrupted", text, "interrupted")


def lost() -> Outcome:
    """A call that ran, and whose result can no longer be shown."""
    return interrupted("The call ran to its end, but the run was cancelled before its result could be handed over.")


def left_running(outcome: Outcome) -> Outcome:
    """Return the outcome of an abandoned call whose thread, which nothing can stop, may still be working."""
    text = f"{outcome.result.text} Its function runs in a thread that cannot be stopped and may still be working."
    return replace(outcome, result=ToolResult.of_text(text, is_error=True))


def with_partial(outcome: Outcome, partial: ToolResult) -> Outcome:
    """The outcome of a call that was told to stop and then still returned something, which the model also sees. It
    did not end by itself, so it does not end the run."""
    if not partial.content and partial.details is None:
        return outcome
    head = outcome.result.text + ("\nUntil then it gave:" if partial.content else "")
    content = (TextBlock(text=head), *partial.content)
    return replace(
        outcome, result=partial.model_copy(update={"content": content, "is_error": True, "terminate": False})
    )
