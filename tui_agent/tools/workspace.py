"""The working directory of the tools: it resolves paths and remembers the versions of files that were read.

Calls that change files at the same time know of one another, so that each reports its own changes.
"""

import asyncio
import os
import stat
import tempfile
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from weakref import WeakValueDictionary

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import make_private_directories
from tui_agent.protocol.tool import JudgedTarget

from .atomic_write import is_temporary_of
from .file_errors import existing_name
from .file_states import ContentStore
from .file_versions import FileVersions
from .pinned_directory import ResolvedPath
from .processes.spool_file import SESSION_SPOOL_LIMIT, SPOOL_PREFIX, SpoolBudget
from .text_format import printable_name
from .tree_watch import ListProtectedFiles, ProtectedWatch, TreeWatch
from .typed_tool import Args, TypedTool

Writes: TypeAlias = Collection[Path] | None
"""Resolved paths that a call changes, each with everything below it; None if they are unknown."""


@dataclass(slots=True, eq=False)
class ChangingCall:
    """One call while it changes files."""

    writes: Writes
    others: list[Writes] = field(default_factory=list[Writes])
    """Paths of the calls that ran at some time while this one did."""

    def may_have_changed(self, path: Path) -> bool:
        """Return True if a change of a file may be this call's.

        Each change is at least one call's: one that no call names is that of every call, or of those whose paths are
        unknown.
        """
        if self.writes is not None and _covers(self.writes, path):
            return True
        others = tuple(self.others)  # A copy, because this runs in a thread while other calls begin.
        if any(other is not None and _covers(other, path) for other in others):
            return False
        return self.writes is None or None not in others


class ChangingCalls:
    """The calls of one workspace that change files now."""

    def __init__(self) -> None:
        self._running: list[ChangingCall] = []

    @contextmanager
    def entered(self, writes: Writes) -> Generator[ChangingCall]:
        """Count a call among them. Enter before its first look at the files and leave after the last."""
        call = ChangingCall(writes, [other.writes for other in self._running])
        for other in self._running:
            other.others.append(writes)
        self._running.append(call)
        try:
            yield call
        finally:
            self._running.remove(call)


def _covers(writes: Collection[Path], path: Path) -> bool:
    return any(path.is_relative_to(write) or is_temporary_of(path, write) for write in writes)


_TEMPORARY = "/tmp/"
"""Directory that commands in trials have for themselves: its path means theirs if nothing is there."""


class Workspace:
    """One working directory, with the state that the tools of one session share."""

    def __init__(
        self,
        root: Path,
        *,
        spool_dir: Path,
        contents: ContentStore | None = None,
        private: Sequence[Path] = (),
        spool_limit: int = SESSION_SPOOL_LIMIT,
        warn: Callable[[str], None] | None = None,
        protected_files: ListProtectedFiles | None = None,
        warn_of_protected: Callable[[str], None] | None = None,
        is_trusted: bool = True,
        note_withheld: Callable[[str], None] | None = None,
        trial_temporary: Path | None = None,
    ) -> None:
        """
        Args:
            root: the working directory; relative paths start here.
            spool_dir: directory for output that is too long for the model; created, 0700, when first needed.
            contents: store for the contents of changed files; None: they are not stored, nor changes of commands
                detected.
            private: directories of tui-agent, in which changes of commands are not detected.
            spool_limit: most bytes in all files of long output.
            warn: called with a warning for the user when this limit is reached; None: only tool results mention it. As
                the others, it is called on the event loop.
            protected_files: lists the files that no command should change; None: they are not watched.
            warn_of_protected: called with a warning for the user when a command changed one of them.
            is_trusted: False if git may run there for tui-agent only behind walls.
            note_withheld: called once with a note for the user on the variables that commands do not inherit; None:
                no settings can let them through, and only the first result mentions them.
            trial_temporary: the /tmp of commands in trials; None: there is none.
        """
        self.root = root.resolve()
        self.spool_dir = Path(os.path.realpath(spool_dir))
        self.spool_budget = SpoolBudget(self.spool_dir, spool_limit)
        self._warn = warn
        self.changing_calls = ChangingCalls()
        self.versions = FileVersions()
        """The last version of each file that read, write or edit saw."""
        self.contents = contents
        # Our own files change while a command runs.
        ours = (self.spool_dir, *(Path(os.path.realpath(path)) for path in private))
        self.tree = TreeWatch(self.root, contents, ours, is_trusted=is_trusted) if contents is not None else None
        self.protected = None if protected_files is None else self._protected_watch(protected_files)
        self.warn_of_protected = warn_of_protected or _ignore
        self.note_withheld = note_withheld
        self._trial_temporary = trial_temporary
        self._warned_of_unwatched = False
        # A lock lives only as long as some call holds it.
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def _protected_watch(self, files: ListProtectedFiles) -> ProtectedWatch:
        # Without a session, a store without room: the changes are found, but cannot be undone.
        return ProtectedWatch(self.root, self.contents or ContentStore(self.spool_dir, 0), files)

    def given(self, path: str) -> str:
        """Return a path from a call with `~` expanded, so that permission rules and tools mean the same file."""
        return os.path.expanduser(path)

    def with_existing_name(self, arguments: JsonObject) -> JsonObject:
        """Return the arguments of a call with the existing name in `path`, if only one looks equal to the name given,
        or with its place in the /tmp of commands, if it is there.

        Called before a call is judged, so that the name that is judged and shown is the one that is opened.
        """
        path = arguments.get("path")
        return arguments | {"path": self._existing(path)} if isinstance(path, str) and path else arguments

    def in_trial(self, path: str) -> str:
        """Return the place of a path in the /tmp that commands in a trial see, if something is there; else the path.

        A path in the workspace stays as it is. Blocks.
        """
        if self._trial_temporary is None or not f"{path}/".startswith(_TEMPORARY) or self.contains(self.resolve(path)):
            return path
        name = os.path.normpath(path.removeprefix(_TEMPORARY.rstrip("/")).lstrip("/"))
        found = os.path.join(self._trial_temporary, name)
        return os.path.normpath(found) if name.split("/")[0] != ".." and os.path.lexists(found) else path

    def _existing(self, path: str) -> str:
        given = self.given(path)
        if "\0" in given:
            return path
        if (found := self.in_trial(given)) != given:
            return found
        if os.path.lexists(os.path.join(self.root, given)):
            return path
        reached = "/" if given.startswith("/") else ""
        for name in filter(None, given.split("/")):
            found = existing_name(os.path.join(self.root, reached), name)
            if found is None:
                return path
            reached = os.path.join(reached, found)
        return reached

    def resolve(self, path: str) -> Path:
        """Return the absolute path, from the root if it is relative, with every link followed. Blocks.

        Its last parts need not exist.

        Raises:
            ValueError: it contains a NUL.
        """
        return Path(os.path.realpath(os.path.join(self.root, self.given(path))))

    def place(self, path: str, targets: Sequence[JudgedTarget]) -> ResolvedPath:
        """Return the place of `path`: the judged target if the call was judged, else its resolved path."""
        return ResolvedPath.of(targets[0]) if targets else ResolvedPath(self.resolve(path))

    def contains(self, path: Path) -> bool:
        """Return True if a resolved path is the root or below it."""
        return path.is_relative_to(self.root)

    def display(self, path: Path) -> str:
        """Return a resolved path for messages: relative if it is below the root, else absolute."""
        shown = path.relative_to(self.root) if self.contains(path) else path
        return printable_name(str(shown))

    def alone_with(self, path: Path) -> asyncio.Lock:
        """Return the lock for changing `path`, so that two calls never start from the same old content."""
        lock = self._locks.get(path)
        if lock is None:
            self._locks[path] = lock = asyncio.Lock()
        return lock

    def is_spooled(self, path: Path) -> bool:
        """Return True if a resolved path is one of the files with long output."""
        return path.is_relative_to(self.spool_dir)

    def warn_of_full_spool(self) -> None:
        """Warn the user once when the files with long output have reached their limit. Call it on the event loop."""
        if self.spool_budget.newly_reached() and self._warn is not None:
            self._warn(
                f"The saved outputs of this session have reached {self.spool_budget.limit:,} bytes. Commands keep "
                "running; of further long output only the start and the end are saved (setting `output_disk_limit`)."
            )

    def warn_of_unwatched(self) -> None:
        """Warn the user once that some changes of protected files are not detected. Call it on the event loop."""
        if not self._warned_of_unwatched:
            # Once: every command would repeat it.
            self._warned_of_unwatched = True
            self.warn_of_protected(
                "This workspace has too many directories or protected files to compare all of them after a command. A "
                "command may change a hook or a setting of a repository deep in it unnoticed; work in a subdirectory, "
                "or keep such files outside."
            )

    def new_spool_file(self) -> tuple[int, Path]:
        """Create an empty 0600 file for long output; return a descriptor, which the caller closes, and its path.

        Raises:
            OSError: it cannot be created, or the directory belongs to another user.
        """
        self.make_spool_dir()
        # It is 0600 from the moment it exists.
        descriptor, name = tempfile.mkstemp(prefix=SPOOL_PREFIX, suffix=".txt", dir=self.spool_dir)
        return descriptor, Path(name)

    def make_spool_dir(self) -> None:
        """Create the directory for long output, private to the user.

        Raises:
            OSError: it cannot be created, or belongs to another user.
        """
        make_private_directories(self.spool_dir)
        status = self.spool_dir.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(f"{self.spool_dir} is not a directory of this user")
        if stat.S_IMODE(status.st_mode) != 0o700:
            self.spool_dir.chmod(0o700)


def _ignore(text: str) -> None:
    """Discard a warning."""


class WorkspaceTool(TypedTool[Args]):
    """Tool whose argument `path`, if it has one, names a file or directory of a workspace."""

    def __init__(
        self, workspace: Workspace, name: str, description: str, model: type[Args], *, read_only: bool = False
    ) -> None:
        super().__init__(name, description, model, read_only=read_only)
        self._workspace = workspace
        self.working_directory = workspace.root

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return self._workspace.with_existing_name(arguments)
