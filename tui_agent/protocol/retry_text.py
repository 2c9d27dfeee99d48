"""The sentence about a retry, the same on the screen and without one."""

from .run_events import StepRetry


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
