"""The files that one command changes: events for rewind and undo, and a warning about protected ones."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from tui_agent.protocol.background import run_service, run_shielded_in_thread
from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.events import AgentEvent, FileChanged
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import EFFECTS_DATA, DataUpdate, ToolContext

from .file_change import DIFF_LIMIT
from .file_states import NamedTargets, TreeChange, diffs_of, named_paths
from .text_format import counted
from .tree_watch import ProtectedChanges, ProtectedSnapshot, TreeSnapshot
from .workspace import ChangingCall, Workspace

UNCOVERED = "not_covered"
"""Name, in the details of a result, of what a rewind does not cover."""

_DIFF_SECONDS = 0.2
"""Seconds to spend on comparing changed files line by line."""

_EVENTS_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class CommandChanges:
    """Files that a command changed in the workspace."""

    is_watched: bool = False
    """True if its files were compared."""
    count: int | None = None
    """Number of changed files; None if some may be missing."""
    protected: str = ""
    """Changes of protected files; empty if there are none."""
    can_undo: bool = False
    """True if the user can undo those."""
    uncovered: tuple[str, ...] = ()
    """Directories that the command named and changed, of which nothing was stored: a rewind does not cover them."""
    unsure: int = 0
    """Number of files that changed beside a background command, which may have changed them instead."""

    @property
    def note(self) -> str:
        """Note on protected files for the model; empty if none changed."""
        return f"this command {self.finding}" if self.protected else ""

    @property
    def finding(self) -> str:
        """Note on protected files without its subject, the command."""
        undo = ", who can undo it" if self.can_undo else ""
        return f"changed protected files: {self.protected}. A warning shows this to the user{undo}"

    @property
    def details(self) -> JsonObject:
        """Part of the details of the call's result."""
        counted_files: JsonObject = {"files_changed": self.count} if self.is_watched else {}
        uncovered: JsonObject = {UNCOVERED: list(self.uncovered)} if self.uncovered else {}
        return counted_files | uncovered | ({"protected_changes": self.protected} if self.protected else {})

    @property
    def mark(self) -> str:
        """Note on protected files, and on changes of unknown origin, for the row of the call."""
        unsure = f"{counted(self.unsure, 'file')} changed beside a background command" if self.unsure else ""
        protected = f"changed protected files: {self.protected}" if self.protected else ""
        return " · ".join(filter(None, (protected, unsure)))


NOT_WATCHED = CommandChanges()


class CommandWatch:
    """Comparison of the workspace before and after one command."""

    def __init__(
        self,
        workspace: Workspace,
        changing: ChangingCall | None,
        command: str = "",
        *,
        others_run: Callable[[], bool] = lambda: False,
    ) -> None:
        """
        Args:
            changing: the command among the calls that change files now; None for a command that only reads: nothing
                is compared.
            others_run: returns True while a background command runs, which may change files at any time.
        """
        self._others_run = others_run
        self._is_alone = True
        self._ends_in_background = False
        self._workspace = workspace
        self._changing = changing
        self._tree = None if changing is None else workspace.tree
        self._protected = None if changing is None else workspace.protected
        self._command = command
        self._named: NamedTargets | None = None
        self._files: TreeSnapshot | None = None
        self._guarded: ProtectedSnapshot | None = None
        self._reported = 0
        """Number of changes of protected files that were reported before."""

    async def begin(self) -> None:
        """Record the workspace as it is before the command."""
        self._is_alone = not self._others_run()
        if self._tree is not None or self._protected is not None:
            await run_service("listing files", asyncio.to_thread(self._look))

    @property
    def pending(self) -> CommandChanges | None:
        """Changes as far as they are known before `end_later`; None if nothing is compared."""
        if self._files is None and self._guarded is None and self._named is None:
            return None
        return CommandChanges(is_watched=self._tree is not None)

    async def end_later(self, report: Callable[[DataUpdate], None], notify: Callable[[str], object]) -> None:
        """Do the same as `end` while the model is asked already, and publish what the call's result would say.

        Args:
            report: `report_effects` of the call.
            notify: called with what the model has to know about protected files.
        """
        found = await run_service(
            "finding changed files", self._emit(lambda data: report(DataUpdate(kind="file.changed", data=data)))
        )
        changes = found or CommandChanges(is_watched=self._tree is not None)
        data = changes.details | ({"mark": changes.mark} if changes.mark else {})
        report(DataUpdate(kind=EFFECTS_DATA, data=data))
        if changes.protected:
            notify(changes.finding)

    async def end(self, context: ToolContext) -> CommandChanges:
        """Emit a `file.changed` for each file that the command changed, and warn the user of protected ones.

        Changes beside a background command are emitted without the call: either of the two may have made them. Those of
        protected files are emitted with it all the same, so that the user can undo them.
        """
        if self._files is None and self._guarded is None and self._named is None:
            return CommandChanges(is_watched=self._tree is not None)
        found = await run_service("finding changed files", self._emit(partial(context.emit, "file.changed")))
        return CommandChanges(is_watched=self._tree is not None) if found is None else found

    def _look(self) -> None:
        # Protected files first: they are few, and must be found even if the workspace is too large to compare.
        if self._protected is not None:
            self._reported = len(self._protected.reported)
            self._guarded = self._protected.look()
        if self._tree is None:
            return
        self._files = self._tree.look()
        listed: Collection[str] = () if self._files is None else self._files.files
        root = self._tree.root
        named = named_paths(self._command, root, listed)
        self._named = NamedTargets.look(named, root, listed, self._tree.contents) if named else None

    async def _emit(self, changed: Callable[[JsonObject], object]) -> CommandChanges:
        changes, is_complete, protected = await run_shielded_in_thread(self._compare)
        uncovered = self._uncovered()
        # Asked again: a background command may have begun while this one ran.
        self._is_alone = self._is_alone and not self._others_run()
        by: JsonObject = {} if self._is_alone else {"call_id": None}
        guarded = {change.path for change in protected.files}
        if self._is_alone:
            for change, _ in changes:
                if change.before is not None and change.after is not None:
                    self._workspace.versions.remember_own_change(change.path, change.before.digest, change.after.digest)
        for number, (change, diff) in enumerate(changes, start=1):
            changed(change.event_data(diff) | ({} if change.path in guarded else by))
            if number % _EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # Thousands of changed files must not hold up the event loop.
        words = protected.words(self._workspace.root)
        can_undo = bool(protected.files) and self._tree is not None
        self._warn("A command", words, can_undo=can_undo)
        unsure = 0 if self._is_alone else sum(change.path not in guarded for change, _ in changes)
        count = len(changes) - unsure
        count = count if is_complete else None
        return CommandChanges(self._tree is not None, count, words, can_undo, uncovered, unsure)

    def _uncovered(self) -> tuple[str, ...]:
        directories = () if self._named is None else self._named.changed_directories()
        return tuple(f"{self._workspace.display(path)}/" for path in directories)

    async def end_in_background(self, call_id: str, publish: Callable[[AgentEvent], object]) -> str:
        """Publish the protected files that changed since `begin`; return a note on them for the model, or nothing.

        What other calls reported meanwhile, and what is still so, is not reported again.
        """
        self._ends_in_background = True
        self._files = self._named = (
            None  # Calls that ran meanwhile have reported its other changes as far as they saw them.
        )
        if self._guarded is None:
            return ""
        changes, _, protected = await run_shielded_in_thread(self._compare)
        for change, diff in changes:
            publish(FileChanged.model_validate({"call_id": call_id, **change.event_data(diff)}))
        words = protected.words(self._workspace.root)
        self._warn("A background command", words, can_undo=bool(protected.files) and self._tree is not None)
        return f"It changed protected files: {words}." if words else ""

    def _warn(self, what: str, words: str, *, can_undo: bool) -> None:
        if words:
            offer = " Press ctrl+u on its row to undo that." if can_undo else ""
            self._workspace.warn_of_protected(f"{what} changed protected files: {words}.{offer}")
        if self._guarded is not None and not self._guarded.is_complete:
            self._workspace.warn_of_unwatched()

    def _compare(self) -> tuple[list[tuple[TreeChange, Diff]], bool, ProtectedChanges]:
        protected, files, is_complete = ProtectedChanges(), list[TreeChange](), False
        if self._protected is not None and self._guarded is not None:
            protected = self._protected.changes_since(self._guarded)
        if self._tree is not None and self._files is not None:
            found = self._tree.changes_since(self._files)
            files, is_complete = found.files, found.is_complete
        if self._named is not None:
            listed = {change.path for change in files}
            files = [*files, *(change for change in self._named.changes() if change.path not in listed)]
        if self._changing is not None:
            # Two calls that run at once each see the changes of the other, too.
            files = [change for change in files if self._changing.may_have_changed(change.path)]
            protected = protected.only(self._changing.may_have_changed)
        if self._protected is not None:
            if self._ends_in_background:
                protected = protected.without(self._protected.reported[self._reported :])
            self._protected.reported += (*protected.files, *protected.directories)
        if self._tree is None:
            return [], is_complete, protected
        # Files that git tracks may be protected, too: each change is reported once.
        known = {change.path for change in files}
        files = [*files, *(change for change in protected.files if change.path not in known)]
        diffs = diffs_of(files, self._tree.contents, self._tree.root, seconds=_DIFF_SECONDS, room=DIFF_LIMIT)
        return list(zip(files, diffs, strict=True)), is_complete, protected
