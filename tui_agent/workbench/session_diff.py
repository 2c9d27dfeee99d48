"""Changes of the session and of the work tree: the files, the differences of one, and their undo."""

import asyncio
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.git.read_only_git import read_git
from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.facts.change_facts import (
    ChangedFile,
    ChangedFileList,
    DiffView,
    FileChange,
    FileDifference,
    FileStep,
    Revision,
    RewindOutcome,
)
from tui_agent.protocol.regular_file import repository_root
from tui_agent.rewind import Rewinder
from tui_agent.rewind.session_changes import compare, undo_steps
from tui_agent.tools.file_states import CONTENT_LIMIT, content_of, read_file_state, same_file
from tui_agent.tools.file_versions import digest_of

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
        """Leave a file out of its list until it changes again or `show_kept` is called."""
        self._kept[shown.file.view, shown.file.shown] = shown.now

    def show_kept(self, view: DiffView, /) -> None:
        """List the kept files of a view again."""
        self._kept = {key: now for key, now in self._kept.items() if key[0] != view}

    async def revisions(self) -> tuple[Revision, ...]:
        """Return the branches, then the commits, that can be reviewed, newest first; none outside of git."""
        return await asyncio.to_thread(self._tree.revisions)

    async def difference(self, file: ChangedFile, /) -> FileDifference:
        """Return the differences of a file; their `problem` says why they are not known or cannot be undone."""
        return await asyncio.to_thread(self._difference, file)

    async def undo(self, shown: FileDifference, parts: Collection[int] | None, /) -> RewindOutcome:
        """Undo the differences of a file, or some of its hunks.

        Args:
            parts: indices into `shown.diff.hunks`, from 0; None: everything.

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


MOST_FILES = 10_000
"""Most files of a list."""
MOST_REVISIONS = 30
"""Most branches, and most commits, to choose from."""
NO_REPOSITORY = "This folder is not in a git repository."
NO_ANSWER = "git gave no answer: it may not run here, or took too long."

_LIST_SECONDS = 20.0
_SECONDS = 5.0
_DIFF = ("diff", "--raw", "-z", "--no-abbrev", "--no-ext-diff", "--no-textconv")
_CONTENTS = ("--numstat", "--find-renames")
"""Options that make git read all changed files; one that it may not read ends it."""
_BELOW = ("--relative", "--ignore-submodules=dirty", "--", ".")
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_BRANCH_FORMAT = ("--sort=-committerdate", "--format=%(HEAD)%00%(refname:short)%00%(contents:subject)")
_KINDS: dict[str, FileChange] = {"A": "added", "D": "deleted", "R": "renamed"}
_NO_FILTER = ("unspecified", "unset")
_LINK, _NESTED, _EXECUTABLE = 0o120000, 0o160000, 0o100755


@dataclass(frozen=True, slots=True)
class WorkTree:
    """The work tree below a folder. Blocks."""

    root: Path
    """The folder, resolved."""
    is_trusted: bool
    """False if git may run only behind walls."""

    def files(self) -> ChangedFileList:
        """Return the files that differ from the last commit, and those that git does not know, sorted by name.

        At most `MOST_FILES`; the list's note says how many more there are, or why it is empty.
        """
        if not os.path.lexists(repository_root(self.root) / ".git"):
            return ChangedFileList("tree", (), NO_REPOSITORY)
        base = b"HEAD"
        if self._git(("rev-parse", "--verify", "--quiet", "HEAD^{tree}")) is None:
            # Before the first commit everything is new, compared with the tree of no files.
            base = (self._git(("hash-object", "-t", "tree", "--stdin")) or b"").strip()
        against = (os.fsdecode(base), *_BELOW)
        changed = self._git((*_DIFF, *_CONTENTS, *against), _LIST_SECONDS)
        if changed is None:
            changed = self._git((*_DIFF, "--no-renames", *against), _LIST_SECONDS)
        untracked = self._git((*_UNTRACKED, "--", "."), _LIST_SECONDS)
        if changed is None or untracked is None:
            return ChangedFileList("tree", (), NO_ANSWER)
        found = {file.shown: file for file in self._read(os.fsdecode(changed))}
        for name in os.fsdecode(untracked).split("\0")[:-1]:
            known = found.pop(name, None)
            if known is None:
                found[name] = self._untracked(name)
            elif not self._is_as_before(known):
                # Git lists a file twice that it no longer tracks.
                found[name] = replace(known, change="changed", counts=None)
        files = sorted(found.values(), key=lambda file: file.shown)
        more = len(files) - MOST_FILES
        note = f"{count_text(more, 'more file is', 'more files are')} not listed" if more > 0 else ""
        return ChangedFileList("tree", tuple(files[:MOST_FILES]), note)

    def before(self, file: ChangedFile) -> tuple[FileState | None, bytes | None, str]:
        """Return the state of a file in the last commit, its content, and the reason why the content is not known.

        State None and an empty content if the file was not there; content None and a reason if it is not known.
        """
        if not file.old_mode:
            return None, b"", ""
        name = file.old_shown or file.shown
        size = self._git(("cat-file", "-s", f"HEAD:./{name}"))
        if size is None:
            return None, None, NO_ANSWER
        mode = file.old_mode & 0o777
        if int(size) > CONTENT_LIMIT:
            return FileState(digest="", size=int(size), mode=mode, kept=False), None, "it is too large in git"
        is_link = file.old_mode == _LINK
        if not is_link and (name_of_filter := self._filter(name)):
            words = f"git's filter “{name_of_filter}” makes its content; `git restore` undoes it"
            return FileState(digest="", size=int(size), mode=mode, kept=False), None, words
        how = ("blob",) if is_link else ("--filters",)
        content = self._git(("cat-file", *how, f"HEAD:./{name}"))
        if content is None:
            return None, None, NO_ANSWER
        state = FileState(digest=digest_of(content), size=len(content), mode=mode, is_link=is_link, kept=False)
        return state, content, ""

    def revisions(self) -> tuple[Revision, ...]:
        """Return the other branches, the one changed last first, then the last `MOST_REVISIONS` commits."""
        branches = self._git(("for-each-ref", *_BRANCH_FORMAT, f"--count={MOST_REVISIONS + 1}", "refs/heads"))
        commits = self._git(("rev-list", "--format=%h%x00%s", f"--max-count={MOST_REVISIONS}", "HEAD"))
        found: list[Revision] = []
        for line in os.fsdecode(branches or b"").splitlines():
            here, name, text = (*line.split("\0", 2), "", "")[:3]
            if name and here != "*":
                found.append(Revision(name, text, "branch"))
        for line in os.fsdecode(commits or b"").splitlines():
            name, end, text = line.partition("\0")
            if end:
                found.append(Revision(name, text, "commit"))
        return tuple(found)

    def _is_as_before(self, file: ChangedFile) -> bool:
        """Return True if a file has the content and the kind that it has in the last commit."""
        before, _, _ = self.before(file)
        with suppress(OSError):
            return before is not None and same_file(
                mode_before(file, before, now := read_file_state(file.path, None)), now
            )
        return False

    def _filter(self, name: str) -> str:
        """Return the filter that makes the content of a file; empty if none does."""
        output = self._git(("check-attr", "-z", "filter", "--", name))
        if output is None:
            return "unknown"
        value = os.fsdecode(output).split("\0")[2]
        return "" if value in _NO_FILTER else value

    def _read(self, output: str) -> Iterator[ChangedFile]:
        """Yield the files of git's raw records, with the numbers of lines that follow them."""
        fields = iter(output.split("\0")[:-1])
        raw: list[tuple[str, str, str]] = []
        counts: dict[str, tuple[int, int]] = {}
        for field in fields:
            if field.startswith(":"):
                first = next(fields)
                raw.append((field, first, next(fields) if field.split(" ")[4][0] in "RC" else first))
                continue
            added, removed, name = field.split("\t", 2)
            if not name:
                name = (next(fields), next(fields))[1]
            if added != "-":
                counts[name] = int(added), int(removed)
        for facts, old, new in raw:
            old_mode, new_mode, _, _, status = facts[1:].split(" ")
            yield self._changed((int(old_mode, 8), int(new_mode, 8)), status[0], old, new, counts.get(new))

    def _changed(
        self, modes: tuple[int, int], status: str, old: str, new: str, counts: tuple[int, int] | None
    ) -> ChangedFile:
        is_moved = status == "R"
        return ChangedFile(
            self.root / new,
            new,
            _KINDS.get(status, "changed"),
            "tree",
            old_path=self.root / old if is_moved else None,
            old_shown=old if is_moved else "",
            # A copy is a new file.
            old_mode=0 if status == "C" else modes[0],
            counts=counts,
            problem="it is a repository of its own" if _NESTED in modes else "",
        )

    def _untracked(self, name: str) -> ChangedFile:
        problem = "it is a repository of its own" if name.endswith("/") else ""
        return ChangedFile(self.root / name, name, "untracked", "tree", problem=problem)

    def _git(self, arguments: tuple[str, ...], seconds: float = _SECONDS) -> bytes | None:
        return read_git(self.root, arguments, seconds=seconds, is_trusted=self.is_trusted)


def mode_before(file: ChangedFile, before: FileState | None, now: FileState | None) -> FileState | None:
    """Return an earlier state with the permissions that git's mode means for the present file.

    Git knows only whether a file is executable: if that did not change, the permissions are as they are. Unchanged if
    one of the states is a link or missing (None).
    """
    if before is None or now is None or before.is_link or now.is_link:
        return before
    if (file.old_mode == _EXECUTABLE) == bool(now.mode & 0o100):
        return before.model_copy(update={"mode": now.mode})
    mode = now.mode | (now.mode & 0o444) >> 2 if file.old_mode == _EXECUTABLE else now.mode & ~0o111
    return before.model_copy(update={"mode": mode})
