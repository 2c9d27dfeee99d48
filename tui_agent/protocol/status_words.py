"""Words for the status of a call and for the answer to a question about it, shared by the front ends."""

from .events import ToolStatus

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


def status_words(status: ToolStatus, answered_by: str = "user") -> str:
    """Return the words for a call that ended.

    Args:
        status: its status.
        answered_by: `by` of the answer to the last question about it.
    """
    return REFUSED_BY.get(answered_by, STATUS_WORDS[status]) if status == "denied_user" else STATUS_WORDS[status]
