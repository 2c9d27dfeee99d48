"""Planning of a rewind, by comparing the recorded changes with the files on the disk; and restoring of one file.

The present content of a file is stored first, and nothing else is replaced.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from tui_agent.protocol.diffs import NO_DIFF, NOTHING, Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import FileChanged, FileState
from tui_agent.protocol.facts.change_facts import FileStep, StepKind
from tui_agent.tools.atomic_write import replace_file, temporary_name
from tui_agent.tools.content_store import CONTENT_LIMIT, ContentStore
from tui_agent.tools.file_states import TreeChange, content_of, diff_between, read_file_state, same_file
from tui_agent.tools.pinned_directory import ResolvedPath, pinned_directory

from .file_history import RecordedChange

NOT_KEPT = "its earlier content was not saved: the file was too large, or the session's limit was reached"
NOT_KNOWN = "its earlier content was not recorded"
CHANGED_SINCE = "someone else changed it since"
CHANGED_BETWEEN = "someone else changed it in between; that change would be lost"
CHANGED_LATER = "a later call changed it again; that change would be lost"
NOT_COMPARED = "it is too large to be compared with the content the agent left"

DIFF_SHOWN = 40_000


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

    The changes are all of the session. Planning adds nothing to the contents; `shown` returns the name of a file for
    messages.
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


def carry_out(step: FileStep, contents: ContentStore, mark: str = "") -> tuple[FileChanged, ...]:
    """Carry out one step and return its event; none if the file already has its target state. Blocks.

    By `mark`, temporary files are found if the program is killed.

    Raises:
        ToolError: the step was not carried out: the file is not in the state that was shown to the user, or cannot be
            stored or written.
    """
    try:
        now = read_file_state(step.path, contents)
        if same_file(now, step.target):
            return ()
        if not same_file(now, step.now):
            raise ToolError("it changed after the page was shown; it was not touched")
        if now is not None and not now.kept and (step.kind != "delete" or step.is_conflict):
            raise ToolError("its present content cannot be saved, so it was not replaced")
        content = content_of(step.target, contents)
        if content is None:
            raise ToolError("its saved content is damaged or missing")
        if now is None and step.target is not None:
            _remove_empty_directory(step.path)
        if step.target is None:
            _delete(step.path)
        elif step.target.is_link or (now is not None and now.is_link):
            _put(step.path, step.target, content, mark)
        else:
            _write(step.path, step.shown, step.target, content, mark)
    except OSError as error:
        raise ToolError(error.strerror or str(error)) from error
    counts = NO_DIFF if step.problem else Diff(counts=(step.diff.added, step.diff.removed))
    return (FileChanged.model_validate(TreeChange(step.path, now, step.target).event_data(counts)),)


def unrecoverable(step: FileStep) -> bool:
    """Return True if a step deletes a file that is too large to be saved."""
    return step.kind == "delete" and step.now is not None and step.now.size > CONTENT_LIMIT


def remove_temporary(paths: Iterable[Path], mark: str) -> None:
    """Remove the temporary files of steps at some paths that were carried out with a mark. Blocks."""
    for path in paths:
        with suppress(OSError, ToolError), pinned_directory(path.parent) as directory:
            os.unlink(temporary_name(path.name, mark), dir_fd=directory)


def order_steps(steps: Sequence[FileStep]) -> tuple[FileStep, ...]:
    """Return the steps in the order to carry them out: deletions first, inner paths before outer ones."""
    gone = [step for step in steps if step.target is None]
    return (
        *sorted(gone, key=lambda step: step.path, reverse=True),
        *(step for step in steps if step.target is not None),
    )


def _delete(path: Path) -> None:
    with pinned_directory(path.parent) as directory:
        os.unlink(path.name, dir_fd=directory)


def _remove_empty_directory(path: Path) -> None:
    """Remove a directory at the path of a former file if it contains nothing but directories."""
    with suppress(FileNotFoundError), pinned_directory(path.parent) as directory:
        if not stat.S_ISDIR(os.stat(path.name, dir_fd=directory, follow_symlinks=False).st_mode):
            return
        if any(files for _, _, files, _ in os.fwalk(path.name, dir_fd=directory)):
            raise ToolError("it is a directory now, and not an empty one")
        for _, names, _, held in os.fwalk(path.name, topdown=False, dir_fd=directory):
            for name in names:
                os.rmdir(name, dir_fd=held)
        os.rmdir(path.name, dir_fd=directory)


def _write(path: Path, shown: str, target: FileState, content: bytes, mark: str) -> None:
    """Write the content and mode of a regular file."""
    place = ResolvedPath(path)
    before: os.stat_result | None = None
    try:
        with pinned_directory(path.parent) as directory:
            before = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        pass
    replace_file(place, content, before, shown, mark)
    with pinned_directory(path.parent) as directory:
        status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
        if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) != target.mode:
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                os.fchmod(descriptor, target.mode)
            finally:
                os.close(descriptor)


def _put(path: Path, target: FileState, content: bytes, mark: str) -> None:
    """Create a symbolic link, or a file in place of one, atomically."""
    temporary = temporary_name(path.name, mark)
    with pinned_directory(path.parent, create=True) as directory:
        try:
            if target.is_link:
                os.symlink(os.fsdecode(content), temporary, dir_fd=directory)
            else:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with open(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
                    file.write(content)
                    os.fchmod(file.fileno(), target.mode)
            os.rename(temporary, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            if error.errno != errno.ENOENT:
                os.unlink(temporary, dir_fd=directory)
            raise
