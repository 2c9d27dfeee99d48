"""Changes of the session and of the work tree: the files, the differences of one, and their undo."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.facts.diff_facts import ChangedFile, ChangedFileList, DiffView, FileDifference, Revision
from tui_agent.protocol.facts.rewind_facts import FileStep, RewindOutcome
from tui_agent.rewind import Rewinder
from tui_agent.rewind.session_changes import compare, undo_steps
from tui_agent.tools.file_states import content_of, read_file_state, same_file

from .work_tree import WorkTree, mode_before

NOT_SAVED = "this session is not saved, so an undo could not be undone"


class SessionDiff:
    """Lists changed files, compares them with their earlier state, and undoes what the user chooses."""

    def __init__(self, root: Path, rewinder: Rewinder | None, *, is_trusted: bool) -> None:
        self._tree = WorkTree(root.resolve(), is_trusted)
        self._rewinder = rewinder
        self._kept: dict[tuple[DiffView, str], FileState | None] = {}

    async def files(self, view: DiffView, /) -> ChangedFileList:
        """Return the changed files of a view.

        Raises:
            SessionError: the journal cannot be read.
        """
        if view == "tree":
            return await asyncio.to_thread(lambda: self._without_kept(self._tree.files()))
        if self._rewinder is None:
            return ChangedFileList(view, (), "This session is not saved, so its changes are not known.")
        found = await self._rewinder.changed_files()
        listed = ChangedFileList(view, found, "" if found else "The session has changed no file.")
        return await asyncio.to_thread(self._without_kept, listed)

    def keep(self, shown: FileDifference, /) -> None:
        """Leave a file out of its list until it changes again, for this session."""
        self._kept[shown.file.view, shown.file.shown] = shown.now

    def show_kept(self, view: DiffView, /) -> None:
        """List the kept files of a view again."""
        self._kept = {key: now for key, now in self._kept.items() if key[0] != view}

    async def revisions(self) -> tuple[Revision, ...]:
        """Return the branches and commits that can be reviewed; none outside of git."""
        return await asyncio.to_thread(self._tree.revisions)

    async def difference(self, file: ChangedFile, /) -> FileDifference:
        """Return the differences of a file."""
        return await asyncio.to_thread(self._difference, file)

    async def undo(self, shown: FileDifference, parts: Collection[int] | None, /) -> RewindOutcome:
        """Undo the differences of a file, or some of its hunks by index.

        Raises:
            ToolError: it has changed since they were shown, or cannot be undone; nothing was done.
            AlreadyRunningError: the agent is running; nothing was done.
            SessionError: the journal cannot be read; nothing was done.
        """
        if self._rewinder is None:
            raise ToolError(NOT_SAVED)
        steps = await asyncio.to_thread(self._steps, shown, parts, self._rewinder)
        name, count = shown.file.shown, len(shown.diff.hunks)
        since = "since the session began" if shown.file.view == "session" else "since the last commit"
        if parts is not None and len(parts) < count:
            words = f"{len(parts)} of {count_text(count, 'part')} of the changes of {name} {since}"
        else:
            words = f"the changes of {name} {since}"
        return await self._rewinder.undo(words, steps)

    def _without_kept(self, found: ChangedFileList) -> ChangedFileList:
        files = tuple(file for file in found.files if not self._is_kept(file))
        return replace(found, files=files, kept=len(found.files) - len(files))

    def _is_kept(self, file: ChangedFile) -> bool:
        key = file.view, file.shown
        try:
            return key in self._kept and same_file(self._kept[key], read_file_state(file.path, None))
        except OSError:
            return False

    def _difference(self, file: ChangedFile) -> FileDifference:
        try:
            before, content, problem = self._before(file)
            if file.problem:
                return FileDifference(file, problem=file.problem)
            shown = replace(compare(replace(file, problem=problem), before, content), file=file)
        except OSError as error:
            return FileDifference(file, problem=f"it cannot be read: {error.strerror or error}")
        except ToolError as error:
            return FileDifference(file, problem=str(error))
        return shown if self._rewinder is not None or shown.problem else replace(shown, problem=NOT_SAVED)

    def _before(self, file: ChangedFile) -> tuple[FileState | None, bytes | None, str]:
        if file.problem:
            return None, None, file.problem
        if file.view == "tree":
            before, content, problem = self._tree.before(file)
            now = read_file_state(file.path, None)
            return mode_before(file, before, now), content, problem
        content = None if self._rewinder is None else content_of(file.before, self._rewinder.contents)
        return file.before, content, "" if content is not None else "its saved content is damaged or missing"

    def _steps(self, shown: FileDifference, parts: Collection[int] | None, rewinder: Rewinder) -> tuple[FileStep, ...]:
        try:
            _, content, problem = self._before(shown.file)
            if problem:
                raise ToolError(problem)
            return undo_steps(shown, content, parts, rewinder.contents)
        except OSError as error:
            raise ToolError(f"it cannot be read: {error.strerror or error}") from error
