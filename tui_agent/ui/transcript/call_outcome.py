"""Words for the state and the result of a call in one line. Pure."""

from collections.abc import Callable

from tui_agent.protocol.cancellation import ASKED_AGAIN, NOT_BEGUN
from tui_agent.protocol.events import ToolStatus
from tui_agent.protocol.permissions import PLAN_MODE_DENIAL
from tui_agent.protocol.report_text import REFUSED_BY, via_words
from tui_agent.ui.panel.call_rows import wait_text
from tui_agent.ui.state.call_records import question_text, settled_text
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall

RESUMED = frozenset((ASKED_AGAIN, NOT_BEGUN))
"""Reasons for which a call ended that a resumed session starts again."""
_LONGEST_READ = 400
"""Characters of a result in which its first lines are sought."""

_WORDS: dict[ToolStatus, str] = {
    "overridden": "replaced by a hook",
    "denied_user": "you denied it",
    "denied_policy": "denied",
    "denied_hook": "denied by a hook",
    "denied_guardrail": "denied by a guardrail",
    "withheld": "withheld from the model",
    "skipped_steering": "skipped: you steered",
    "skipped_hook": "skipped by a hook",
    "skipped_user": "you skipped it",
    "cancelled": "cancelled",
    "interrupted": "outcome unknown",
    "timeout": "timed out",
    "not_found": "no such tool",
}
"""Texts for results that the tool did not produce."""
_STYLES: dict[ToolStatus, str] = {"interrupted": "warning", "timeout": "error"}
"""Styles of those that are not the decision of a user, a rule or a hook."""
_PROBLEMS: frozenset[ToolStatus] = frozenset({"error", "timeout", "invalid", "not_found", "output_limit"})


def outcome_of(view: CallViewState) -> tuple[str, str]:
    """Return the result of a call in one line, with its style; empty while there is none."""
    if view.status is None:
        return "", ""
    details = view.outcome.details or {}
    reported, first = details.get("outcome"), first_line(view.outcome.result)
    if view.outcome.error_kind == ASKED_AGAIN:
        return "asks again when the session resumes", "muted"
    if view.status in _WORDS:
        return _refusal(view, _WORDS[view.status]), _STYLES.get(view.status, "muted")
    if view.status in _PROBLEMS:
        failure = (reported if isinstance(reported, str) and reported else first) or "failed"
        parts = (failure, settled_text(view.changes), _answer_from_elsewhere(view))
        return " · ".join(filter(None, parts)), "error"
    settled, answer = settled_text(view.changes), view.approval.resolution
    # The user knows that it was their own answer.
    reason = answer.note if answer is not None and answer.by == "user" else view.changes.trial.reason
    if settled.startswith("discarded") and reason:
        settled = f"{settled}: {reason}"
    said = reported if isinstance(reported, str) else ""
    return " · ".join(filter(None, (said, settled, _answer_from_elsewhere(view)))), "muted"


def _answer_from_elsewhere(view: CallViewState) -> str:
    answer = view.approval.resolution
    return "" if answer is None else via_words(answer.decision, answer.via)


def state_of(view: CallViewState, find: Callable[[str], LedgerCall | None]) -> tuple[str, str]:
    """Return the state or the result of a call in one line, with its style."""
    match view.phase:
        case "asking":
            return question_text(view.approval.request), "warning"
        case "waiting" | "queued":
            return wait_text(view, find), "muted"
        case "running" if view.agent_asks:
            return "needs you", "warning"
        case "running":
            return view.live.progress, "muted"
        case "ended":
            return outcome_of(view)


def first_line(text: str) -> str:
    """Return the first line with text; with the second if it only announces that."""
    lines = [line for line in text[:_LONGEST_READ].split("\n") if line.strip()][:2]
    is_heading = len(lines) > 1 and lines[0].endswith(":")
    return f"{lines[0]} {lines[1].strip().removeprefix('- ')}" if is_heading else "".join(lines[:1])


def _refusal(view: CallViewState, words: str) -> str:
    """Return who kept a call from running, and why."""
    resolution, reason = view.approval.resolution, _reason(view)
    if view.status == "denied_user" and resolution is not None:
        words = via_words(resolution.decision, resolution.via) or REFUSED_BY.get(resolution.by, words)
    if view.status == "denied_policy" and reason.startswith(PLAN_MODE_DENIAL):
        head, _, what = reason.partition(": ")
        # The row names the file already.
        return head if what and what.rpartition(" ")[2] in view.summary.split() else reason
    if reason.lower().startswith(words):
        return reason
    return f"{words}{f': {reason}' if reason else ''}"


def _reason(view: CallViewState) -> str:
    """Return why a call was denied or skipped, as the user, the rule or the hook said it."""
    resolution, decision = view.approval.resolution, view.approval.decision
    if view.status in ("denied_user", "skipped_user"):
        return resolution.note if resolution is not None else ""
    if view.status == "denied_policy" and decision is not None:
        return decision.rule or decision.reason
    if view.status in ("denied_hook", "skipped_hook"):
        return next((run.reason for run in reversed(view.approval.hooks) if run.reason), "")
    return ""
