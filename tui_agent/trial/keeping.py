"""Keeping of a part of a layer: planned, written to a journal, then taken to the workspace step by step.

A kill before the journal is complete leaves the workspace as it was; after that, `finish_keeping` takes the missing
steps.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.regular_file import sync_directory
from tui_agent.protocol.trial import REPOSITORY, KeepReport, KeepSelection, KeptFile, LayerChange, LayerChanges

from .keep_journal import Action, KeepJournal, Step
from .keep_steps import NotKeptError, StepRunner
from .layer_root import LayerRoot
from .layer_view import LayerView, kind_of, status_of
from .repository_locks import hold_locks, lock_paths, release_locks, repository_phase

_REMOVE, _PRUNE, _DIRECTORY, _PUT, _MODE, _DIRECTORY_MODE = range(10, 16)
"""Order of the steps; those of a repository's objects come before, those of its refs, HEAD and index after them."""
_MOST_BYTES = 256 * 1024
"""Largest old content that is returned instead of a file with it."""
_MOST_SYNCED = 64
"""Most files that are made durable one by one instead of all at once."""


def keep_changes(
    directory: Path, roots: Sequence[LayerRoot], changes: LayerChanges, selection: KeepSelection
) -> KeepReport:
    """Apply a part of a layer to the workspace. What an interrupted keeping still had to do comes first. Blocks.

    Args:
        directory: the layer's own directory, which receives the journal and the old files.
        roots: as for `read_changes`.
        changes: its result.
        selection: the part to keep.

    Raises:
        OSError: the journal cannot be written; nothing was changed.
    """
    finished = finish_keeping(directory) or KeepReport()
    problems: dict[str, str] = {}
    chosen = list(_chosen(changes, selection, problems))
    journal = KeepJournal(directory)
    journal.saved.mkdir(mode=0o700, exist_ok=True)
    plan = _Plan(journal, roots, selection.texts)
    journal.steps = sorted(plan.steps(chosen), key=lambda step: (step.phase, _order(step)))
    if any(step.is_repository for step in journal.steps):
        journal.locks = lock_paths(step.target for step in journal.steps if step.is_repository)
    journal.steps = _without_changed(journal, problems)
    journal.problems = problems
    journal.write()
    report = _take_steps(journal, is_resumed=False)
    is_kept = finished.repository or report.repository
    return KeepReport((*finished.files, *report.files), is_kept, {**finished.problems, **report.problems})


def finish_keeping(directory: Path) -> KeepReport | None:
    """Finish what a kill interrupted, and return what was kept; None if keeping was not begun. Blocks.

    Raises:
        OSError: the journal cannot be read or written.
    """
    journal = KeepJournal.read(directory)
    if journal is None:
        return None
    return _report(journal) if journal.is_done else _take_steps(journal, is_resumed=True)


def _chosen(changes: LayerChanges, selection: KeepSelection, problems: dict[str, str]) -> Iterator[LayerChange]:
    """Yield the changes to keep; those of the repository have an empty path or are tied to it."""
    named, overwritten = frozenset(selection.paths), frozenset(selection.overwrite)
    with_repository = REPOSITORY in named and bool(changes.repository)
    for change in changes.changes:
        is_named = change.path in named or (change.tree != "" and change.tree in named)
        if not is_named and not (change.with_repository and with_repository):
            continue
        if change.sort == "refused":
            problems[change.path] = change.reason
        elif change.with_repository and not with_repository:
            problems[change.path] = "it belongs to the repository's change and is kept with it only"
        elif change.conflict and change.path not in overwritten:
            problems[change.path] = change.conflict
            with_repository = with_repository and not change.with_repository
        else:
            yield change
    if with_repository:
        conflict = next((change for change in changes.repository_changes if change.conflict), None)
        if conflict is not None:
            problems[REPOSITORY] = f"{conflict.path}: {conflict.conflict}"
        else:
            yield from changes.repository_changes


class _Plan:
    """The steps for chosen changes."""

    def __init__(self, journal: KeepJournal, roots: Sequence[LayerRoot], texts: Mapping[str, str]) -> None:
        self._journal = journal
        self._roots = [(root, LayerView(root)) for root in roots]
        self._texts = texts
        self._parents: set[str] = set()
        self._number = 0

    def steps(self, chosen: Iterable[LayerChange]) -> Iterator[Step]:
        """Yield the steps in any order."""
        for change in chosen:
            yield from self._steps(change)

    def _steps(self, change: LayerChange) -> Iterator[Step]:
        source, new = change.source, change.new
        if change.source == change.target:
            yield self._step("watch", 0, change)
            return
        if (text := self._texts.get(change.path)) is not None:
            source, new = self._write_text(change, text), "file"
        if new == "absent":
            if change.old == "directory":
                yield self._step("prune", _PRUNE, change)
            else:
                yield self._step("remove", _REMOVE, change, saved=True)
            yield from self._pruned_parents(change)
        elif new == "directory":
            if change.old not in ("absent", "directory"):
                yield self._step("remove", _REMOVE, change, saved=True)
            if change.old != "directory":
                yield from self._made_parents(change)
                yield self._step("directory", _DIRECTORY, change)
            yield self._step("mode", _DIRECTORY_MODE, change, is_new=change.old != "directory")
        elif change.kind == "mode" and text is None:
            yield self._step("mode", _MODE, change)
        else:
            if change.old == "directory":
                yield self._step("prune", _PRUNE, change, path="")
            yield from self._made_parents(change)
            yield self._step("put", _PUT, change, source=source, saved=True)

    def _step(
        self,
        action: Action,
        phase: int,
        change: LayerChange,
        *,
        path: str | None = None,
        source: Path | None = None,
        saved: bool = False,
        is_new: bool = False,
    ) -> Step:
        self._number += 1
        is_repository = change.sort == "repository"
        is_old = change.new == "absent" or action == "prune"
        return Step(
            action,
            repository_phase(self._name(change, change.target), action) if is_repository else phase,
            change.path if path is None else path,
            str(change.target),
            str(source or ""),
            () if is_new else change.seen,
            stat.S_IMODE(change.seen[2]) if is_old and change.seen else change.mode,
            str(self._journal.saved / f"{self._journal.mark[:8]}-{self._number}") if saved else "",
            is_repository or change.with_repository,
        )

    def _write_text(self, change: LayerChange, text: str) -> Path:
        self._number += 1
        path = self._journal.saved / f"{self._journal.mark[:8]}-{self._number}.text"
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return path

    def _made_parents(self, change: LayerChange) -> Iterator[Step]:
        """Yield steps for the missing directories above a new file, with the modes that they have in the layer."""
        root, _ = self._root_of(change)
        for parent in change.target.parents:
            if parent == root.place or str(parent) in self._parents:
                return
            self._parents.add(str(parent))
            status = status_of(root.upper / parent.relative_to(root.place))
            if kind_of(status_of(parent)) == "directory" or status is None or not stat.S_ISDIR(status.st_mode):
                return
            mode = stat.S_IMODE(status.st_mode)
            yield self._parent("directory", _DIRECTORY, change, parent)
            yield self._parent("mode", _DIRECTORY_MODE, change, parent)._replace(mode=mode)

    def _pruned_parents(self, change: LayerChange) -> Iterator[Step]:
        """Yield steps for the directories above a deleted file that are not in the layer any more."""
        root, view = self._root_of(change)
        for parent in change.target.parents:
            if parent == root.place or str(parent) in self._parents:
                return
            stored = view.find(str(parent.relative_to(root.place)))
            if stored is not None and kind_of(status_of(stored)) == "directory":
                return
            self._parents.add(str(parent))
            yield self._parent("prune", _PRUNE, change, parent)

    def _parent(self, action: Action, phase: int, change: LayerChange, parent: Path) -> Step:
        if change.sort != "repository":
            return Step(action, phase, "", str(parent))
        phase = repository_phase(self._name(change, parent), action)
        return Step(action, phase, "", str(parent), is_repository=True)

    def _name(self, change: LayerChange, path: Path) -> str:
        """Return a path in the repository's directory, relative to that."""
        return str(path.relative_to(self._root_of(change)[0].place)).removeprefix(".git/")

    def _root_of(self, change: LayerChange) -> tuple[LayerRoot, LayerView]:
        return next(pair for pair in self._roots if change.target.is_relative_to(pair[0].place))


def _order(step: Step) -> tuple[int, str]:
    """Return a key that puts directories before what is in them, except where they are removed or closed."""
    depth = step.target.count("/")
    is_upward = step.action == "prune" or step.phase == _DIRECTORY_MODE
    return (-depth if is_upward else depth if step.action == "directory" else 0), step.target


def _without_changed(journal: KeepJournal, problems: dict[str, str]) -> list[Step]:
    """Return the steps whose files are as they were when the layer was read; the repository's all or none."""
    runner, refused = StepRunner(journal.mark), set[str]()
    try:
        for step in journal.steps:
            try:
                runner.check(step)
            except (NotKeptError, OSError) as error:
                problems[REPOSITORY if step.is_repository else step.path] = _words(step, error)
                refused.add(step.path)
    finally:
        runner.close()
    return [step for step in journal.steps if _stays(step, refused, REPOSITORY in problems)]


def _stays(step: Step, refused: set[str], is_repository_refused: bool) -> bool:
    return step.path not in refused and not (step.is_repository and is_repository_refused)


def _words(step: Step, error: Exception) -> str:
    words = (
        str(error) if isinstance(error, NotKeptError) else f"it cannot be written: {getattr(error, 'strerror', error)}"
    )
    return f"{step.path}: {words}" if step.is_repository else words


def _take_steps(journal: KeepJournal, *, is_resumed: bool) -> KeepReport:
    """Take the steps of a complete journal; those of the repository all or none."""
    problems = journal.problems
    runner = StepRunner(journal.mark)
    # A program that was killed may have taken any of them.
    taken = [step for step in journal.steps if step.is_repository and is_resumed]
    _sync_sources(journal)
    try:
        if REPOSITORY not in problems:
            hold_locks(journal.locks, journal.mark)
    except (NotKeptError, OSError) as error:
        problems[REPOSITORY] = str(error)
    try:
        for step in journal.steps:
            if step.is_repository and REPOSITORY in problems:
                continue
            taken += [step] if step.is_repository and not is_resumed else []
            try:
                runner.run(step)
            except (NotKeptError, OSError) as error:
                if name := REPOSITORY if step.is_repository else step.path:
                    problems[name] = _words(step, error)
        journal.is_done = REPOSITORY not in problems or _undo(journal, runner, taken)
    finally:
        runner.close()
        release_locks(journal.locks, journal.mark)
    _sync_targets(journal)
    try:
        journal.write()
    except OSError:
        if journal.is_done:
            journal.remove()
    return _report(journal)


def _undo(journal: KeepJournal, runner: StepRunner, taken: Sequence[Step]) -> bool:
    """Take steps back, the last one first; return False if the next start has to try it again."""
    try:
        journal.turn()
        for step in reversed(taken):
            runner.undo(step)
    except OSError as error:
        journal.problems[REPOSITORY] += f"; the rest is undone at the next start: {error}"
        return False
    return True


def _sync_sources(journal: KeepJournal) -> None:
    sources = [step.source for step in journal.steps if step.action == "put"]
    if len(sources) > _MOST_SYNCED:
        os.sync()
        return
    for source in sources:
        with suppress(OSError):
            descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _sync_targets(journal: KeepJournal) -> None:
    parents = {os.path.dirname(step.target) for step in journal.steps}
    if len(parents) > _MOST_SYNCED:
        os.sync()
        return
    for parent in parents:
        with suppress(OSError):
            sync_directory(parent)


def _report(journal: KeepJournal) -> KeepReport:
    problems = journal.problems
    files: list[KeptFile] = []
    for step in journal.steps:
        is_refused = step.path in problems or (step.is_repository and REPOSITORY in problems)
        if not step.path or is_refused or (step.phase < _REMOVE or step.phase > _DIRECTORY_MODE):
            continue
        if step.action in ("put", "remove", "mode"):
            files.append(_kept(step))
    is_kept = any(step.is_repository for step in journal.steps) and REPOSITORY not in problems
    return KeepReport(tuple(files), is_kept, problems)


def _kept(step: Step) -> KeptFile:
    target = Path(step.target)
    before = stat.S_IMODE(step.seen[2]) if step.seen and not stat.S_ISLNK(step.seen[2]) else None
    if step.action == "remove":
        return KeptFile(step.path, target, _before(step), None, (before, None))
    after = None if step.phase == _DIRECTORY_MODE else target
    return KeptFile(step.path, target, _before(step), after, (before, step.mode))


def _before(step: Step) -> bytes | Path | None:
    """Return the old content, or the file with it."""
    saved = Path(step.saved or step.target)
    if not step.seen or not stat.S_ISREG(step.seen[2]):
        return None
    if step.seen[3] > _MOST_BYTES:
        return saved
    try:
        return saved.read_bytes()
    except OSError:
        return saved
