"""The trial: a place where a command runs on a copy-on-write view of the workspace, and what it changed there.

Nothing of it is in the workspace before it is kept. Data for events, questions and front ends, and the interfaces by
which the bash tool and the pipeline use a layer without knowing how it is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import Field

from .diffs import NO_DIFF, Diff
from .messages import FrozenModel

Place = Literal["outside", "trial", "read_only", "nowhere"]
"""Surroundings of a call: with the user's rights, on a layer over the workspace, behind the same walls without a layer
so that the workspace is read-only, or not at all."""

TrialSetting = Literal["off", "auto", "required"]
"""Commands in a trial: none, those that no rule or mode lets outside where one works, or none without one."""

TrialBackend = Literal["overlay", "read_only", ""]
"""Backend that works here: a layer, the walls without a layer, none."""

ChangeKind = Literal["added", "changed", "deleted", "mode"]
"""Difference between a path in the layer and in the workspace; a file replaced by a directory, or the other way round,
is `changed`."""

FileKind = Literal["file", "directory", "link", "special", "absent"]
"""Kind of what is at a path; `special` is a device, a socket or a pipe."""

ChangeSort = Literal["workspace", "ignored", "packages", "repository", "protected", "refused"]
"""Class by which a change is decided: a tracked or new file; one that git ignores; an ignored environment or installed
packages (`.venv`, `vendor`); state of the repository; a protected path, or one that something runs later; one that is
never kept."""


class TrialFacts(FrozenModel):
    """The trial as a policy and the pages of a front end need to know it. Tested when the engine starts."""

    setting: TrialSetting = "off"
    backend: TrialBackend = ""
    network: bool = False
    """True if commands in it may use the network."""
    problem: str = ""
    """Reason why a better backend does not work, with what would mend it; empty if the best works or none was tried."""

    @property
    def place(self) -> Place:
        """Place of a command that neither a rule nor a mode lets outside."""
        if self.setting == "off" or not self.backend:
            return "nowhere" if self.setting == "required" else "outside"
        return "trial" if self.backend == "overlay" else "read_only"

    @property
    def is_available(self) -> bool:
        """True if commands can run behind walls."""
        return self.place in ("trial", "read_only")

    @property
    def words(self) -> str:
        """The place in words, for the model and the user."""
        network = "with network" if self.network else "no network"
        if self.place == "trial":
            return f"runs in a trial: changes are kept afterwards, {network}"
        return f"runs behind walls: changes nothing, {network}" if self.place == "read_only" else ""


NO_TRIAL = TrialFacts()
"""Commands run without a trial."""


class ProposedFile(FrozenModel):
    """One changed path of a layer, as a question shows it."""

    path: str
    """Relative to the workspace, with `/`; an absolute path if it is outside, such as a repository's in a parent."""
    kind: ChangeKind
    sort: ChangeSort
    added: int = 0
    removed: int = 0
    """Changed lines of a text."""
    note: str = ""
    """Facts that no diff shows: `binary, 1,204 → 1,310 bytes`, `mode 644 → 755`, `link to ../x`, `empty directory`.
    For a `refused` one the reason."""
    diff: Diff = NO_DIFF
    """Diff of a text, which may be cut; `has_more` then says so."""
    has_more: bool = False
    whole_diff: str = ""
    """If the diff is cut, the file with all of it, for a front end on this machine; empty if it is not known."""
    is_text: bool = False
    """True if the new content is a text that the user can keep in part or edit."""
    runs_later: str = ""
    """For a protected one, who runs or obeys it later: `git runs it`; empty if that is not known."""
    conflict: str = ""
    """Reason why no mode keeps the file: it changed in the workspace since the layer was made; empty if it did not."""


class ProposedTree(FrozenModel):
    """Many changed paths below one directory, shown as one line."""

    path: str
    """Top directory with a final `/`, such as `build/`."""
    sort: ChangeSort
    files: int
    size: int = 0
    """Bytes of new and changed files."""
    runs_later: str = ""
    """As in `ProposedFile`."""


class ProposedChanges(FrozenModel):
    """Everything a command changed in its layer; nothing of it is in the workspace."""

    layer: str
    """Id of the layer."""
    files: tuple[ProposedFile, ...] = ()
    """Deleted and new ones first. At most `MOST_FILES`; the rest is in `trees`."""
    trees: tuple[ProposedTree, ...] = ()
    repository: tuple[str, ...] = ()
    """Changes of the repository in words: `1 commit on main: Fix add`, `index: 2 files staged`. Kept as a whole or not
    at all."""
    repository_files: tuple[str, ...] = ()
    """Paths of the work tree that belong to the repository's change, such as those of a checkout: kept with it only."""
    dropped: int = 0
    """Files of known caches that were dropped without a question."""
    problem: str = ""
    """Reason why the layer cannot be kept, such as a limit that it exceeded; empty if it can."""

    @property
    def is_empty(self) -> bool:
        """True if nothing is left to decide or to name."""
        return not (self.files or self.trees or self.repository or self.problem)

    @property
    def count(self) -> int:
        """Number of changed files, the repository's own not counted."""
        return len(self.files) + sum(tree.files for tree in self.trees)

    @property
    def paths(self) -> tuple[str, ...]:
        """Everything that a selection may name."""
        repository = (REPOSITORY,) if self.repository else ()
        return (*(file.path for file in self.files), *(tree.path for tree in self.trees), *repository)

    def selection(self, values: Mapping[str, object]) -> "KeepSelection":
        """Return the part to keep that an answer names.

        Raises:
            ValueError: the values are wrong, or name something that did not change.
        """
        chosen = KeepSelection.model_validate(values)
        for path in (*chosen.paths, *chosen.texts, *chosen.overwrite):
            if path not in self.paths:
                raise ValueError(f"nothing changed at {path!r}; there are {', '.join(self.paths)}")
        return chosen


MOST_FILES = 200
"""Most files that a proposal lists one by one."""

REPOSITORY = ".git"
"""Name under which a selection keeps the state of the repository."""


class KeepSelection(FrozenModel):
    """Part of a proposal to keep; what is not named is discarded."""

    paths: tuple[str, ...] = ()
    """`ProposedFile.path`s, `ProposedTree.path`s, and `REPOSITORY`."""
    texts: dict[str, str] = Field(default_factory=dict)
    """Text to keep instead of the layer's, by path: some hunks, or an edit of the user. Their paths are in `paths`."""
    overwrite: tuple[str, ...] = ()
    """Paths in conflict that replace what is in the workspace by now."""


class KeptChanges(FrozenModel):
    """Outcome of a proposal."""

    kept: tuple[str, ...] = ()
    discarded: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons why paths that were to be kept were not, one line each; they are among `discarded`."""


@dataclass(frozen=True, slots=True)
class WalledCommand:
    """A command line that runs another one behind walls."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    descriptors: tuple[int, ...] = ()
    """Open files that the process inherits."""
    ends_all: bool = False
    """True if everything that the command started ends with it, in a namespace of processes."""


@dataclass(slots=True)
class LayerChange:
    """One changed path of a layer, with the files to compare. It is filled while the layer is read."""

    path: str
    """As in `ProposedFile.path`."""
    target: Path
    """The real path."""
    kind: ChangeKind
    sort: ChangeSort
    old: FileKind
    new: FileKind
    source: Path
    """The path in the layer's storage; meaningless if `new` is `absent`."""
    size: int = 0
    mode: int = 0
    """Permission bits in the layer."""
    reason: str = ""
    """Reason why it is never kept, for `refused`."""
    conflict: str = ""
    tree: str = ""
    """`ProposedTree.path` under which it is shown; empty if it is shown by itself."""
    with_repository: bool = False
    """True if it is kept with the repository only."""
    seen: tuple[int, ...] = ()
    """Identity of what was at the real path when the layer was read; empty if nothing was there."""
    top: Path | None = None
    """Topmost directory that is deleted with it; None if its own directory is not."""


@dataclass(frozen=True, slots=True)
class LayerChanges:
    """All changes of a layer."""

    changes: tuple[LayerChange, ...] = ()
    """In the order of their paths; the repository's own are not among them."""
    repository: tuple[str, ...] = ()
    """As in `ProposedChanges.repository`; empty if the repository did not change."""
    dropped: int = 0
    problem: str = ""
    repository_changes: tuple[LayerChange, ...] = ()
    """Files of the repository's state, which are kept together; one whose source is the real path must only be the
    same as when the layer was read."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One file that was kept: the record for undo and rewind."""

    path: str
    target: Path
    before: bytes | Path | None
    """Content before, or a file with it if it is large; None if there was no regular file."""
    after: Path | None
    """The kept file; None if it was deleted."""
    mode: int = 0
    """Permission bits before."""


@dataclass(frozen=True, slots=True)
class KeepReport:
    """Result of keeping a part of a layer."""

    files: tuple[KeptFile, ...] = ()
    repository: bool = False
    """True if the repository's state was kept."""
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    """Reason why a path was not kept, by path."""


class Layer(Protocol):
    """A copy-on-write view of the workspace for one command. Its methods block unless they are coroutines."""

    @property
    def id(self) -> str:
        """Id, unique among all layers of the user."""
        ...

    @property
    def place(self) -> Place:
        """`trial`, or `read_only` for walls without a layer, which has no changes."""
        ...

    def walled(self, argv: Sequence[str], environment: Mapping[str, str]) -> WalledCommand:
        """Return the command line that runs `argv` in the layer with this environment. Blocks.

        Raises:
            ToolError: no command can run in it, with the reason.
        """
        ...

    def started(self, output: bytes, returncode: int | None) -> str:
        """Return why the walls could not be set up, so that the command did not run; empty if it ran. Blocks.

        Args:
            output: what the process wrote.
            returncode: its exit code. After a signal (negative), or if it is unknown (None), the command counts as run.
        """
        ...

    def refused(self, output: str) -> str:
        """Return in words what the walls refused, by the messages in a failed command's output; else empty. Blocks."""
        ...

    def changes(self, *, again: bool = False) -> LayerChanges:
        """Return what the command changed. Call it once no process of the command lives; `again` compares it with the
        workspace as it is now, and returns the same object if that is as it was. Blocks."""
        ...

    def keep(self, selection: KeepSelection, result: str = "") -> KeepReport:
        """Apply a part of the changes to the workspace, whole file by whole file; a kill in between is finished or
        undone by the next start. With a `result`, `record` and `changes(again=True)` come first. Blocks."""
        ...

    def finish(self) -> KeepReport | None:
        """Finish a keeping that a kill interrupted, and return what was kept; None if none had begun. Blocks."""
        ...

    def record(self, result: str) -> None:
        """Store the call's result with the layer, so that the question survives the end of the program. Blocks."""
        ...

    def discard(self) -> None:
        """Have the layer removed, whenever that is done. Blocks unless `changes` was called; safe to call twice."""
        ...


class Trials(Protocol):
    """Makes layers for the commands of one session."""

    @property
    def facts(self) -> TrialFacts:
        """Facts about what works here."""
        ...

    @property
    def temporary(self) -> Path | None:
        """Directory that commands see as /tmp, for tools that read it; None if there is none."""
        ...

    def open(self, call_id: str) -> Layer:
        """Return a new layer over the workspace as it is now. Blocks.

        Raises:
            ToolError: none can be made, with the reason.
        """
        ...

    def waiting(self, call_id: str) -> tuple[Layer, str] | None:
        """Return the layer of a call that waited for an answer when the program ended, and its result as JSON. Blocks.

        None if no layer waits under this id, or trials do not work here.
        """
        ...

    def close(self) -> None:
        """Remove all layers that wait for no answer. Blocks."""
        ...


class PendingChanges(Protocol):
    """The changes of a call that has run: they wait for a decision. The tool proposes them (`ToolContext.propose`)."""

    @property
    def proposed(self) -> ProposedChanges:
        """The changes as a question shows them."""
        ...

    async def refresh(self) -> None:
        """Compare the changes with the workspace again: what other calls kept meanwhile is in conflict."""
        ...

    async def record(self, result: str) -> None:
        """Store the call's result as JSON beside the changes, so that the question survives the end of the program."""
        ...

    async def keep(self, selection: KeepSelection, result: str = "") -> KeptChanges:
        """Keep a part, report each kept file as `file.changed`, and discard the rest.

        With a `result`, `record` and `refresh` come first.
        """
        ...

    async def discard(self) -> KeptChanges:
        """Discard everything."""
        ...
