"""Words for what commands changed in a trial: while it waits, and what became of it. Pure."""

from collections.abc import Iterable

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.trial import REPOSITORY, ProposedChanges

from .call_records import CallChanges, CallTrial


def lines_text(added: int, removed: int) -> str:
    """Return numbers of changed lines, such as `+12 −9`; empty if there are none."""
    return " ".join(filter(None, (f"+{added}" if added else "", f"−{removed}" if removed else "")))


def open_count(changes: ProposedChanges) -> int:
    """Return the number of changed files that can be kept."""
    return changes.count - sum(file.sort == "refused" for file in changes.files)


def changed_text(changes: ProposedChanges) -> str:
    """Return the extent of changes, such as `3 files +12 −9`, for a title."""
    files = [file for file in changes.files if file.sort != "refused"]
    counts = lines_text(sum(file.added for file in files), sum(file.removed for file in files))
    text = _words((count_text(open_count(changes), "file"), counts)) if open_count(changes) else ""
    return " · ".join(filter(None, (text, "repository" if changes.repository else "")))


def waiting_text(changes: ProposedChanges) -> str:
    """Return what waits for an answer, such as `2 files wait`."""
    count = open_count(changes)
    if not count:
        return "the repository waits" if changes.repository else "changes wait"
    return f"{count_text(count, 'file')} {'waits' if count == 1 else 'wait'}"


def question_text(request: ApprovalRequest | None) -> str:
    """Return what waits for the user with a call."""
    return waiting_text(request.changes) if request is not None and request.changes is not None else "needs you"


def settled_text(changes: CallChanges, *, in_short: bool = False) -> str:
    """Return what became of changes, such as `kept 1 of 3 files` or `discarded 3 files`; empty before that.

    Args:
        changes: the changes of the call.
        in_short: True to leave out the numbers of lines and the repository.
    """
    trial = changes.trial
    if not trial.is_settled:
        return ""
    total = trial.kept_count + trial.discarded_count
    if not (trial.kept or trial.kept_count):
        return f"discarded {count_text(total, 'file') if total else repository_text(trial)}"
    if trial.discarded_count or not total:
        files = f"{trial.kept_count} of {count_text(total, 'file')}" if total else ""
    else:
        counts = lines_text(sum(file.added for file in changes.files), sum(file.removed for file in changes.files))
        files = _words((count_text(total, "file"), "" if in_short else counts))
    repository = repository_text(trial) if REPOSITORY in trial.kept and not (in_short and files) else ""
    return f"kept {', '.join(filter(None, (files, repository)))}"


def repository_text(trial: CallTrial) -> str:
    """Return the changes of the repository in a few words."""
    changes = trial.proposed.repository if trial.proposed is not None else ()
    return changes[0] if len(changes) == 1 else "the repository's changes"


def _words(parts: Iterable[str]) -> str:
    return " ".join(filter(None, parts))
