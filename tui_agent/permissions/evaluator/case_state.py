"""State that the checks of all parts of one command line share, and a command in one of its directories.

What earlier parts of a line made is not on the disk yet when the line is judged: files, directories, repositories, and
copies of links, through which later parts may change other files.
"""

import os
from dataclasses import dataclass, field
from typing import Literal

from tui_agent.permissions.commands.invocation import Invocation
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.paths.path_resolution import MAX_ENTRIES, TooMuchError, entries_below, is_within
from tui_agent.permissions.paths.protected_paths import TreeSearch
from tui_agent.permissions.shell.expansion import Bindings, ListedDirectories, Value
from tui_agent.protocol.permissions import PermissionMode

MAX_LOOKUPS = 4_000
"""Maximum number of paths looked up for one command, nested commands included."""
MAX_STEPS_BACK = 5_000
"""Maximum number of steps from a path back to what was copied there; after them, anything may be a copied link."""

_PATTERN = frozenset("*?[")

UnknownTargets = Literal["sandbox", "ask", "allow"]
"""Answer to a command that may change files and whose text does not show which: run it in the sandbox, ask, or run it.
"""


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """A command in one of its possible working directories."""

    directory: str | None
    words: tuple[str, ...]
    invocation: Invocation
    listed: ListedDirectories = field(default_factory=ListedDirectories)
    """Directories that the expansion of its words lists."""
    bindings: Bindings = field(default_factory=dict[str, Value])
    """Values of the script's variables at this point."""
    settled: tuple[str, ...] = ()
    """Its words with `UNKNOWN` for those whose order is not certain."""
    own: tuple[str, ...] = ()
    """Words that describe the command itself, without a command that it runs."""


@dataclass(slots=True)
class CaseState:
    """State that the checks of all parts of one command line share."""

    judge: PathJudge
    mode: PermissionMode
    trace: list[str]
    unknown_targets: UnknownTargets
    lookups_left: int = MAX_LOOKUPS
    has_changed: bool = False
    """True if an earlier part may have changed files, which the file system does not show yet."""
    written: set[str] = field(default_factory=set[str])
    """Files that an earlier part filled with any text, with links followed."""
    changed_trees: list[str] = field(default_factory=list[str])
    """Paths at or below which an earlier part may have made anything. An empty directory is none."""
    repositories: list[str] = field(default_factory=list[str])
    """Directories of repositories' data that a part makes, or that a variable names."""
    link_places: list[str] = field(default_factory=list[str])
    """Paths at or below which earlier parts made links."""
    filled: list[tuple[str | None, str]] = field(default_factory=list[tuple[str | None, str]])
    """Source and target of what earlier parts copied, moved, cloned or unpacked; None if anything may be in it."""
    steps_back_left: int = MAX_STEPS_BACK
    tree_search: TreeSearch = field(default_factory=TreeSearch)
    is_confined: bool = False
    """True if a part has unknown targets, and the command may therefore only run in the sandbox."""
    is_confined_by_grant: bool = False
    """True if a grant spells out a part with unknown targets, which allows them only in the sandbox."""
    writes_outside: bool = False
    """True if a part certainly changes a file outside the workspace, which the sandbox prevents."""

    def may_have_made(self, path: str) -> bool:
        """True if a part may have made a directory with contents, or a link to one, of this name."""
        return any(is_within(path, tree) for tree in self.changed_trees)

    def may_pass_link(self, path: str, before: int | None = None) -> bool:
        """True if an earlier part may have copied a link to a resolved path, or to a directory above it.

        Args:
            path: the path.
            before: number of copies to consider: what a copy's source holds is older. None for all.
        """
        for number, (source, into) in enumerate(self.filled[:before]):
            self.steps_back_left -= 1
            if self.steps_back_left < 0:
                return True
            if not is_within(path, into):
                continue
            below = path.removeprefix(into.rstrip("/"))
            self.steps_back_left -= 0 if _PATTERN.isdisjoint(below) else 100
            if source is None and below:
                return True
            if source is not None and (_holds_link(source, below) or self.may_pass_link(source + below, number)):
                return True
        return False


def _holds_link(source: str, below: str) -> bool:
    """True if a path below a directory (after a slash), or a directory above it, is a link. It may be a pattern."""
    path = source
    for name in below.split("/")[1:]:
        if not _PATTERN.isdisjoint(name) and not os.path.lexists(f"{path}/{name}"):
            try:
                return any(entry.is_symlink() for entry in entries_below(path, MAX_ENTRIES))
            except TooMuchError:
                return True
        path = f"{path}/{name}"
        if os.path.islink(path):
            return True
    return False
