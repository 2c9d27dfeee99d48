"""Keeping of a part of a layer: planned, written to a journal, then taken to the workspace step by step.

A kill before the journal is complete leaves the workspace as it was; after that, `finish_keeping` takes the missing
steps.
"""

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import get_args

from tui_agent.protocol.trial import REPOSITORY, KeepReport, KeepSelection, KeptFile, LayerChange, LayerChanges

from .keep_steps import (
    CHANGED,
    Action,
    KeepJournal,
    NotKeptError,
    Step,
    StepRunner,
    hold_locks,
    release_locks,
    was_directory,
)
from .layer_files import identity_of, kind_of, status_of

_SAVED = "kept"
"""Directory of the old files."""
_ORDER: tuple[Action, ...] = get_args(Action)
_OBJECTS, _FILES, _OTHERS, _PACKED, _REFS, _HEAD, _INDEX, _REMOVED_OBJECTS, _MODES = range(9)
"""Order of the steps: a repository's objects, the work tree, the rest of the repository, what of it names objects."""
_LOCKED = ("HEAD", "index", "packed-refs")
_MOST_BYTES = 256 * 1024
"""Largest old content that is returned instead of a file with it."""
_MOST_SYNCED = 64
"""Most files that are made durable one by one instead of all at once."""


def _at_once(work: Callable[[], None]) -> None:
    work()


def keep_changes(
    directory: Path,
    changes: LayerChanges,
    selection: KeepSelection,
    later: Callable[[Callable[[], None]], None] = _at_once,
) -> KeepReport:
    """Apply a part of a layer, of which nothing was kept yet, to the workspace. Blocks.

    Args:
        directory: the layer's own directory, which receives the journal and the old files.
        changes: the layer's changes.
        selection: the part to keep.
        later: called with what is left to do before the layer may be removed. Until then, the next start would do it.

    Raises:
        OSError: the journal cannot be written; nothing was changed.
    """
    journal = KeepJournal(directory)
    (directory / _SAVED).mkdir(mode=0o700, exist_ok=True)
    plan = _Plan(directory / _SAVED, selection)
    for change in _chosen(changes, selection, journal.problems):
        plan.add(change)
    journal.steps = [step for _, step in sorted(plan.steps)]
    journal.locks = plan.locks
    # Before the first step, so that a conflict which is there already needs no way back.
    _check_all(journal)
    # What the journal promises must not be lost with the power.
    _sync(step.source for step in journal.steps if step.source)
    journal.write()
    return _take_steps(journal, later)


def finish_keeping(directory: Path) -> KeepReport | None:
    """Finish what a kill interrupted, and return what was kept; None if keeping was not begun. Blocks.

    Raises:
        OSError: the journal cannot be read or written.
    """
    journal = KeepJournal.read(directory)
    if journal is None:
        return None
    return _report(journal) if journal.is_done else _take_steps(journal, _at_once)


def is_kept_in_part(directory: Path) -> bool:
    """Return True if a keeping was begun and is not done. Blocks.

    Raises:
        OSError: the journal cannot be read.
    """
    journal = KeepJournal.read(directory)
    return journal is not None and not journal.is_done


def _chosen(changes: LayerChanges, selection: KeepSelection, problems: dict[str, str]) -> Iterator[LayerChange]:
    """Yield the changes to keep; those of the repository have an empty path or are tied to it."""
    named, overwritten = frozenset(selection.paths), frozenset(selection.overwrite)
    tied = [change for change in changes.changes if change.with_repository and change.path not in overwritten]
    with_repository = REPOSITORY in named and bool(changes.repository)
    conflict = next((change for change in (*tied, *changes.repository_changes) if change.conflict), None)
    if with_repository and conflict is not None:
        problems[REPOSITORY] = f"{conflict.path}: {conflict.conflict}"
        with_repository = False
    for change in changes.changes:
        is_named = change.path in named or (change.tree != "" and change.tree in named)
        if change.with_repository and with_repository:
            yield change
        elif is_named and change.sort == "refused":
            problems[change.path] = change.reason
        elif is_named and change.with_repository:
            problems[change.path] = "it belongs to the repository's change and is kept with it only"
        elif is_named and change.conflict and change.path not in overwritten:
            problems[change.path] = change.conflict
        elif is_named:
            yield change
    if with_repository:
        yield from changes.repository_changes


class _Plan:
    """The steps for chosen changes, each with its place in their order."""

    def __init__(self, saved: Path, selection: KeepSelection) -> None:
        self.steps: list[tuple[tuple[int, int, int, str], Step]] = []
        self.locks: list[str] = []
        self._saved = saved
        self._texts = selection.texts
        self._parents: set[tuple[str, Path]] = set()

    def add(self, change: LayerChange) -> None:
        """Add the steps for one change."""
        source, new = change.source, change.new
        if (text := self._texts.get(change.path)) is not None:
            source, new = self._write_text(text), "file"
        is_state = change.sort == "repository"
        if is_state and _needs_lock(change):
            self.locks.append(f"{change.target}.lock")
        if change.source == change.target:
            self._add("watch", change)
        elif new == "absent":
            self._add("remove", change)
            self._add_removed_parents(change)
        elif new == "directory":
            if change.old != "directory":
                self._add_made_parents(change)
                self._is_new(change, change.target)
                self._add("directory", change)
            self._add("close", change, is_new=change.old != "directory")
        elif change.kind == "mode" and text is None:
            self._add("mode", change)
        else:
            self._add_made_parents(change)
            self._add("object" if is_state and change.path.startswith("objects/") else "put", change, source=source)

    def _add(self, action: Action, change: LayerChange, *, source: Path | None = None, is_new: bool = False) -> None:
        step = Step(
            action,
            _unit_of(change),
            "" if change.sort == "repository" else change.path,
            str(change.target),
            str(source or ""),
            () if is_new else change.seen,
            change.mode,
            str(self._saved / str(len(self.steps))),
        )
        self._insert(step, change)

    def _insert(self, step: Step, change: LayerChange) -> None:
        depth = step.target.count("/")
        group = _group(change.path, step.action) if change.sort == "repository" else _FILES
        # Directories before what is in them, except where they are removed or closed.
        within = {"directory": depth, "remove": -depth, "close": -depth}.get(step.action, 0)
        self.steps.append(((group, _ORDER.index(step.action), within, step.target), step))

    def _write_text(self, text: str) -> Path:
        path = self._saved / f"{len(self.steps)}.text"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return path

    def _add_made_parents(self, change: LayerChange) -> None:
        """Add steps for the missing directories above a new file, with the modes that they have in the layer."""
        for parent, stored in zip(change.target.parents, change.source.parents, strict=False):
            if not self._is_new(change, parent) or kind_of(status_of(parent)) == "directory":
                return
            if (status := status_of(stored)) is None or not stat.S_ISDIR(status.st_mode):
                return
            self._insert(Step("directory", _shared_unit(change), "", str(parent)), change)
            mode = stat.S_IMODE(status.st_mode)
            self._insert(Step("close", _shared_unit(change), "", str(parent), mode=mode), change)

    def _add_removed_parents(self, change: LayerChange) -> None:
        """Add steps for the directories above a deleted file that are deleted, too."""
        for parent in change.target.parents if change.top is not None else ():
            if not self._is_new(change, parent):
                return
            step = Step("remove", _shared_unit(change), "", str(parent), seen=identity_of(status_of(parent)))
            self._insert(step, change)
            if parent == change.top:
                return

    def _is_new(self, change: LayerChange, parent: Path) -> bool:
        """Return True unless there is a step for a directory already."""
        key = (_shared_unit(change), parent)
        is_new = key not in self._parents
        self._parents.add(key)
        return is_new


def _unit_of(change: LayerChange) -> str:
    return REPOSITORY if change.sort == "repository" or change.with_repository else change.path


def _shared_unit(change: LayerChange) -> str:
    return REPOSITORY if _unit_of(change) == REPOSITORY else ""


def _group(name: str, action: Action) -> int:
    """Return the place of a repository's file in the order of steps, by its path in the repository's directory."""
    if action in ("mode", "close"):
        return _MODES
    if name.startswith("objects/"):
        return _REMOVED_OBJECTS if action == "remove" else _OBJECTS
    if name.startswith("refs/") or name == "packed-refs":
        return _REFS if name.startswith("refs/") else _PACKED
    last = "" if name.startswith("logs/") else name.rpartition("/")[2]
    return {"HEAD": _HEAD, "index": _INDEX}.get(last, _OTHERS)


def _needs_lock(change: LayerChange) -> bool:
    """Return True if git takes a lock to change a file of the repository."""
    is_ref = change.path.startswith("refs/") and os.path.lexists(change.target)
    return is_ref or change.path.rpartition("/")[2] in _LOCKED


def _check_all(journal: KeepJournal) -> None:
    """Note which units are not as they were when the layer was read; also the times of a file's status count."""
    for step in journal.steps:
        is_made = step.action in ("object", "close") or (step.action == "directory" and not step.seen)
        if is_made or was_directory(step) or not step.unit:
            continue
        try:
            if identity_of(status_of(step.target)) != step.seen:
                raise NotKeptError(CHANGED)
        except (NotKeptError, OSError) as error:
            journal.problems[step.unit] = _words(step, error)


def _words(step: Step, error: Exception) -> str:
    reason = getattr(error, "strerror", error)
    words = str(error) if isinstance(error, NotKeptError) else f"it cannot be written: {reason}"
    return f"{step.path or os.path.basename(step.target)}: {words}" if step.unit == REPOSITORY else words


def _take_steps(journal: KeepJournal, later: Callable[[Callable[[], None]], None]) -> KeepReport:
    """Take the steps of a complete journal; those of the repository all or none."""
    problems = journal.problems
    known = dict(problems)
    was_begun = REPOSITORY not in problems or journal.is_undone
    runner = StepRunner(journal.mark)
    try:
        if REPOSITORY not in problems:
            hold_locks(journal)
    except (NotKeptError, OSError) as error:
        problems[REPOSITORY] = str(error)
    try:
        for step in journal.steps:
            if step.unit in problems:
                continue
            try:
                runner.run(step)
            except (NotKeptError, OSError) as error:
                if step.unit:
                    problems[step.unit] = _words(step, error)
        journal.is_done = REPOSITORY not in problems or not was_begun or _undo(journal, runner)
    finally:
        runner.close()
        release_locks(journal)
    # Steps that all succeeded are as good as noted: taken again, they change nothing.
    (later if journal.is_done and problems == known else _at_once)(partial(_finish, journal))
    return _report(journal)


def _finish(journal: KeepJournal) -> None:
    """Make the steps durable, and note them."""
    # A rename lasts once its directory is on the disk.
    _sync({os.path.dirname(step.target) for step in journal.steps})
    try:
        journal.write()
    except OSError:
        if journal.is_done:
            (journal.directory / journal.name).unlink()


def _undo(journal: KeepJournal, runner: StepRunner) -> bool:
    """Take the repository's steps back, the last one first; return False if the next start has to try it again."""
    try:
        journal.turn()
        for step in reversed(journal.steps):
            if step.unit == REPOSITORY:
                runner.undo(step)
    except OSError as error:
        journal.problems[REPOSITORY] += f"; the rest is undone at the next start: {error}"
        return False
    return True


def _sync(paths: Iterable[str]) -> None:
    """Make files and directories durable."""
    every = list(paths)
    if len(every) > _MOST_SYNCED:
        os.sync()
        return
    for path in every:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _report(journal: KeepJournal) -> KeepReport:
    problems = dict(journal.problems)
    if REPOSITORY in problems:
        tied = (step.path for step in journal.steps if step.unit == REPOSITORY and step.path)
        problems |= dict.fromkeys(tied, "it belongs to the repository's change, which is not kept")
    kept = [step for step in journal.steps if step.unit not in problems]
    files = [
        KeptFile(
            step.path,
            target := Path(step.target),
            _before(step),
            target if step.action in ("put", "mode") else None,
            stat.S_IMODE(step.seen[2]) if step.seen else 0,
        )
        for step in kept
        if step.path
    ]
    return KeepReport(tuple(files), any(step.unit == REPOSITORY for step in kept), problems)


def _before(step: Step) -> bytes | Path | None:
    """Return the old content, or the file with it."""
    saved = Path(step.target if step.action == "mode" else step.saved)
    if not step.seen or not stat.S_ISREG(step.seen[2]):
        return None
    if step.seen[3] > _MOST_BYTES:
        return saved
    try:
        return saved.read_bytes()
    except OSError:
        return saved
