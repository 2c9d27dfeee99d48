"""The end of a background command in words, the same on the screen and without one."""

from .activity_events import BackgroundEnded

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
