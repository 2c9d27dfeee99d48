"""What going back would do to files: from what was told of them, and from what is on the disk now."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tui_agent.protocol.events import FileState
from tui_agent.tools.content_store import ContentStore
from tui_agent.tools.file_states import content_of, diff_between, read_file_state, same_file

from .file_history import RecordedChange
from .rewind_plan import FileStep, StepKind

NOT_KEPT = "its content from then was not kept: the file was too large, or there were too many"
NOT_KNOWN = "what it was then was not noted"
CHANGED_SINCE = "somebody else changed it since"
CHANGED_BETWEEN = "somebody else changed it in between, and that would be lost"
CHANGED_LATER = "it was changed again by a later call, and that would be lost"
NOT_COMPARED = "it is too large to be compared with what was left behind"

DIFF_SHOWN = 40_000
"""Most characters of a difference."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is there now, and how to show it."""

    path: Path
    shown: str
    now: FileState | None
    contents: ContentStore

    def diff(self, old: FileState | None, new: FileState | None) -> tuple[str, int, int]:
        """The difference of two states as text and lines, or words where there is none to show."""
        before, after = self._bytes(old), self._bytes(new)
        if before is None or after is None:
            return "", 0, 0
        names = "/dev/null" if old is None else f"a/{self.shown}", "/dev/null" if new is None else f"b/{self.shown}"
        diff = diff_between(before, after, names)
        return ("", 0, 0) if diff is None else (diff.shortened(DIFF_SHOWN).text, diff.added, diff.removed)

    def _bytes(self, state: FileState | None) -> bytes | None:
        found = content_of(state, self.contents)
        if found is None and state is not None and state == self.now and not state.is_link:
            return _present_content(self.path, state)
        return found


def plan_rewind(
    changes: Sequence[RecordedChange], to_seq: int, contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[FileStep, ...]:
    """What would happen so that every file is what it was right after an event. Blocks.

    Args:
        changes: all there were.
        to_seq: that event.
        contents: where contents are kept; present ones are not.
        shown: names files.
    """
    steps: list[FileStep] = []
    for path, ours in _by_path(change for change in changes if change.seq > to_seq).items():
        step = _step(Path(path), ours, (), contents, shown)
        steps.extend([step] if step is not None else [])
    return tuple(sorted(steps, key=lambda step: step.shown))


def plan_call_undo(
    changes: Sequence[RecordedChange], calls: frozenset[str], contents: ContentStore, shown: Callable[[Path], str]
) -> tuple[FileStep, ...]:
    """What would happen so that what these calls changed is as it was before them. Blocks."""
    steps: list[FileStep] = []
    for path, told in _by_path(changes).items():
        places = [place for place, change in enumerate(told) if change.call_id in calls]
        if places:
            ours, later = told[places[0] : places[-1] + 1], told[places[-1] + 1 :]
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
    """The step that takes `ours` back; None where nothing is to be done."""
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
        text, added, removed = reading.diff(gap[0].after, gap[1].before)
        return replace(step, problem=CHANGED_BETWEEN, diff=text, added=added, removed=removed)
    if later and same_file(later[-1].after, now):
        text, added, removed = reading.diff(left, now)
        return replace(step, problem=CHANGED_LATER, diff=text, added=added, removed=removed)
    if not last.known or not same_file(now, left):
        compared = left is None or now is None or (left.digest and now.digest)
        text, added, removed = reading.diff(left, now)
        return replace(
            step, problem=CHANGED_SINCE if compared else NOT_COMPARED, diff=text, added=added, removed=removed
        )
    text, added, removed = reading.diff(now, target)
    return replace(step, diff=text, added=added, removed=removed)


def _gap(changes: Sequence[RecordedChange]) -> tuple[RecordedChange, RecordedChange] | None:
    """The first two changes between which somebody else changed the file, or may have."""
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
