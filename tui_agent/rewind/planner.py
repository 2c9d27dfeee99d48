"""Planning of a rewind: compare the recorded changes of files with the files on the disk."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tui_agent.protocol.diffs import NO_DIFF, NOTHING, Diff
from tui_agent.protocol.events import FileState
from tui_agent.tools.content_store import ContentStore
from tui_agent.tools.file_states import content_of, diff_between, read_file_state, same_file

from .file_history import RecordedChange
from .rewind_plan import FileStep, StepKind

NOT_KEPT = "its earlier content was not saved: the file was too large, or the session's limit was reached"
NOT_KNOWN = "its earlier content was not recorded"
CHANGED_SINCE = "someone else changed it since"
CHANGED_BETWEEN = "someone else changed it in between; that change would be lost"
CHANGED_LATER = "a later call changed it again; that change would be lost"
NOT_COMPARED = "it is too large to be compared with the content the agent left"

DIFF_SHOWN = 40_000
"""Most characters of a diff."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The present state of a file, with access to contents for diffs."""

    path: Path
    shown: str
    now: FileState | None
    contents: ContentStore

    def diff(self, old: FileState | None, new: FileState | None) -> Diff:
        """Return the diff of two states; empty if a content is missing."""
        before, after = self._bytes(old), self._bytes(new)
        if before is None or after is None:
            return NO_DIFF
        names = NOTHING if old is None else f"a/{self.shown}", NOTHING if new is None else f"b/{self.shown}"
        return (diff_between(before, after, names) or NO_DIFF).shortened(DIFF_SHOWN)

    def _bytes(self, state: FileState | None) -> bytes | None:
        found = content_of(state, self.contents)
        if found is None and state is not None and state == self.now and not state.is_link:
            return _present_content(self.path, state)
        return found


def plan_rewind(
    changes: Sequence[RecordedChange], to_seq: int, contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[FileStep, ...]:
    """Return the steps that bring every file back to its state right after an event. Blocks.

    Args:
        changes: all changes of the session.
        to_seq: number of that event.
        contents: store for contents; planning adds none to it.
        shown: returns the name of a file for messages.
    """
    steps: list[FileStep] = []
    for path, ours in _by_path(change for change in changes if change.seq > to_seq).items():
        step = _step(Path(path), ours, (), contents, shown)
        steps.extend([step] if step is not None else [])
    return tuple(sorted(steps, key=lambda step: step.shown))


def plan_call_undo(
    changes: Sequence[RecordedChange], calls: frozenset[str], contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[FileStep, ...]:
    """Return the steps that undo the changes of these calls. Blocks."""
    steps: list[FileStep] = []
    for path, recorded in _by_path(changes).items():
        places = [place for place, change in enumerate(recorded) if change.call_id in calls]
        if places:
            ours, later = recorded[places[0] : places[-1] + 1], recorded[places[-1] + 1 :]
            step = _step(Path(path), ours, later, contents, shown)
            steps.extend([step] if step is not None else [])
    return tuple(sorted(steps, key=lambda step: step.shown))


def _by_path(changes: Iterable[RecordedChange]) -> dict[str, list[RecordedChange]]:
    found: dict[str, list[RecordedChange]] = {}
    for change in changes:
        found.setdefault(change.path, []).append(change)
    return found


def _step(
    path: Path,
    ours: Sequence[RecordedChange],
    later: Sequence[RecordedChange],
    contents: ContentStore,
    shown: Callable[[Path], str],
) -> FileStep | None:
    """Return the step that undoes `ours`; None if there is nothing to do."""
    first, last = ours[0], ours[-1]
    target, left = first.before, last.after
    try:
        now = read_file_state(path, None)
    except OSError as error:
        return FileStep(path, shown(path), "stuck", None, target, problem=f"cannot be read: {error.strerror or error}")
    if first.known and same_file(now, target):
        return None
    step = FileStep(path, shown(path), _kind(now, target), now, target)
    if not first.known:
        return replace(step, kind="stuck", problem=NOT_KNOWN)
    if content_of(target, contents) is None:
        return replace(step, kind="stuck", problem=NOT_KEPT)
    reading = _Reading(path, step.shown, now, contents)
    if gap := _gap(ours):
        return replace(step, problem=CHANGED_BETWEEN, diff=reading.diff(gap[0].after, gap[1].before))
    if later and same_file(later[-1].after, now):
        return replace(step, problem=CHANGED_LATER, diff=reading.diff(left, now))
    if not last.known or not same_file(now, left):
        compared = left is None or now is None or (left.digest and now.digest)
        return replace(step, problem=CHANGED_SINCE if compared else NOT_COMPARED, diff=reading.diff(left, now))
    return replace(step, diff=reading.diff(now, target))


def _gap(changes: Sequence[RecordedChange]) -> tuple[RecordedChange, RecordedChange] | None:
    """Return the first two changes between which someone else changed the file, or may have."""
    for one, other in pairwise(changes):
        if not (one.known and other.known and same_file(one.after, other.before)):
            return one, other
    return None


def _kind(now: FileState | None, target: FileState | None) -> StepKind:
    if target is None:
        return "delete"
    return "create" if now is None else "restore"


def _present_content(path: Path, state: FileState) -> bytes | None:
    try:
        return path.read_bytes() if os.path.getsize(path) == state.size else None
    except OSError:
        return None
