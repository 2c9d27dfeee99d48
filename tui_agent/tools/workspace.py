"""The directory the tools work in: names become paths here, and what was read of each file is remembered here."""

import asyncio
import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from tui_agent.protocol.tool import JudgedTarget

from .content_store import ContentStore
from .file_versions import FileVersions
from .pinned_directory import ResolvedPath
from .spool_file import SESSION_SPOOL_LIMIT, SPOOL_PREFIX, SpoolBudget
from .text_format import printable_name
from .tree_watch import TreeWatch


class Workspace:
    """One working directory with what the tools of one session know about its files."""

    def __init__(
        self,
        root: Path,
        *,
        spool_dir: Path,
        contents: ContentStore | None = None,
        private: Sequence[Path] = (),
        spool_limit: int = SESSION_SPOOL_LIMIT,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """
        Args:
            root: the working directory; relative names start here.
            spool_dir: directory of ours for output that is too long for the model; made, 0700, when first needed.
            contents: keeps what files held before and after they were changed; None: nobody does.
            private: directories of ours, in which no changes of commands are looked for.
            spool_limit: most bytes in all files of long output.
            warn: called with a warning for the user once this limit is reached; None: only the results say so.
        """
        self.root = root.resolve()
        self.spool_dir = Path(os.path.realpath(spool_dir))
        self.spool_budget = SpoolBudget(self.spool_dir, spool_limit)
        """Budget that the files of long output share."""
        self._warn = warn
        self.versions = FileVersions()
        """What read, write and edit last saw of each file."""
        self.contents = contents
        """What files held before and after they were changed; None: that is not kept."""
        ours = (self.spool_dir, *(Path(os.path.realpath(path)) for path in private))
        self.tree = TreeWatch(self.root, contents, ours) if contents is not None else None
        """Finds what commands change; None: nobody looks."""
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def given(self, path: str) -> str:
        """The name as a call gave it, with `~` expanded, so that whoever judges it means the same file."""
        return os.path.expanduser(path)

    def resolve(self, path: str) -> Path:
        """The path a name leads to, every link followed, also where its last parts do not exist yet."""
        return Path(os.path.realpath(os.path.join(self.root, self.given(path))))

    def place(self, path: str, targets: Sequence[JudgedTarget]) -> ResolvedPath:
        """Where a call that names `path` works: exactly where it was judged to, if it was."""
        return ResolvedPath.of(targets[0]) if targets else ResolvedPath(self.resolve(path))

    def contains(self, path: Path) -> bool:
        """Whether a resolved path is the root or below it, compared by components."""
        return path.is_relative_to(self.root)

    def display(self, path: Path) -> str:
        """A resolved path for texts: relative to the root where it is below, else absolute."""
        shown = path.relative_to(self.root) if self.contains(path) else path
        return printable_name(str(shown))

    def alone_with(self, path: Path) -> asyncio.Lock:
        """A lock that calls changing `path` hold, so that two of them never work from the same old content."""
        lock = self._locks.get(path)
        if lock is None:
            self._locks[path] = lock = asyncio.Lock()
        return lock

    def is_spooled(self, path: Path) -> bool:
        """Whether a resolved path is one of our files with long output."""
        return path.is_relative_to(self.spool_dir)

    def warn_of_full_spool(self) -> None:
        """Warn once that the files of long output have reached their limit. Called on the event loop."""
        if self.spool_budget.newly_reached() and self._warn is not None:
            self._warn(
                f"The outputs kept for this session have reached {self.spool_budget.limit:,} bytes. Commands keep "
                "running; of long output only the start and the end are kept (see the setting `output_disk_limit`)."
            )

    def new_spool_file(self) -> tuple[int, Path]:
        """Makes an empty 0600 file for long output; gives a descriptor for writing and its path.

        Raises:
            OSError: it cannot be made, or the directory belongs to somebody else.
        """
        self.spool_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = self.spool_dir.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise PermissionError(f"{self.spool_dir} is not a directory of ours")
        if stat.S_IMODE(status.st_mode) != 0o700:
            self.spool_dir.chmod(0o700)
        descriptor, name = tempfile.mkstemp(prefix=SPOOL_PREFIX, suffix=".txt", dir=self.spool_dir)
        return descriptor, Path(name)
