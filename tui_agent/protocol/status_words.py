"""Words for calls, answers, retries and background commands, the same on the screen and without one."""

from .activity_events import BackgroundEnded
from .events import ToolStatus
from .run_events import StepRetry

STATUS_WORDS: dict[ToolStatus, str] = {
    "ok": "ok",
    "error": "failed",
    "timeout": "timed out",
    "invalid": "invalid input",
    "not_found": "no such tool",
    "denied_policy": "denied",
    "denied_user": "denied by you",
    "denied_hook": "denied by a hook",
    "denied_guardrail": "denied by a guardrail",
    "skipped_steering": "skipped: you steered",
    "skipped_hook": "skipped by a hook",
    "skipped_user": "skipped by you",
    "overridden": "replaced by a hook",
    "cancelled": "cancelled",
    "interrupted": "outcome unknown",
    "withheld": "withheld from the model",
    "output_limit": "too much output",
}
"""Words for each status."""

REFUSED_BY = {
    "timeout": "denied: no answer in time",
    "nobody": "denied: no user to ask",
    "policy": "denied by a rule",
    "cancel": "not run: cancelled before you answered",
    "resume": "not run: the session ended before you answered",
}
"""Words for `denied_user` if the user did not answer, by what answered."""


ANOTHER_PROGRAM = "another tui-agent"
"""`via` of an answer that the user gave in the list of tasks of another program."""


def via_words(decision: str, via: str) -> str:
    """Return who answered a question from elsewhere, and what; empty for an answer here."""
    words = {"approve": "allowed", "deny": "denied"}.get(decision, "skipped")
    if via == ANOTHER_PROGRAM:
        return f"{words} in {via}"
    return f"{words} by notify {via}" if via else ""


def status_words(status: ToolStatus, answered_by: str = "user") -> str:
    """Return the words for a call that ended; `answered_by` is `by` of the answer to the last question about it."""
    return REFUSED_BY.get(answered_by, STATUS_WORDS[status]) if status == "denied_user" else STATUS_WORDS[status]


_WORDS = {
    "killed": "was stopped",
    "ended_with_session": "was stopped with the session",
    "timeout": "was stopped after its time limit",
    "failed": "could not be run",
    "detached": "runs on without tui-agent",
    "unknown": "ended with an earlier tui-agent",
}


def background_end_text(event: BackgroundEnded) -> str:
    """Return how a background command ended."""
    code = event.code or 0
    ended = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return f"{event.task_id} {_WORDS.get(event.status, ended)}"


def retry_text(event: StepRetry) -> str:
    """Return one sentence: what happened, what becomes of an unfinished answer, and when the next attempt follows."""
    # Journals of earlier versions may have no text, and providers of other programs a text without the status.
    reason = (event.text or event.error_kind.replace("_", " ")).rstrip(". ")
    if event.status not in (None, 200) and str(event.status) not in reason:
        reason = f"{reason} ({event.status})"
    lost = "the unfinished answer is discarded; " if event.discarded else ""
    when = f"in {wait_text(event.wait_s)}" if event.wait_s >= 0.05 else "now"
    return f"{reason}; {lost}trying again {when} (attempt {event.attempt} of {event.max})"


def wait_text(seconds: float) -> str:
    """Return a time to wait: `8.0 s`, `5 min`, `2.5 h`."""
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 99.5 * 60 else f"{seconds / 3600:.1f} h"
