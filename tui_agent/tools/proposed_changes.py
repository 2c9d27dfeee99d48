"""Changes of a command in a trial: shown as diffs, then kept, in part or as a whole, or discarded."""

import asyncio
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from tui_agent.git.protected_tree import run_later
from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.diffs import NO_DIFF, NOTHING, Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.trial import (
    REPOSITORY,
    ChangeSort,
    KeepReport,
    KeepSelection,
    KeptChanges,
    KeptFile,
    Layer,
    LayerChange,
    LayerChanges,
    ProposedChanges,
    ProposedFile,
    ProposedTree,
)

from .file_change import CHANGE_LIMIT, DIFF_LIMIT
from .file_states import (
    CONTENT_LIMIT,
    MOST_OF_ONE_DIFF,
    ContentStore,
    TreeChange,
    diff_between,
    read_file_state,
    state_of_content,
)
from .file_versions import digest_of
from .text_format import SAMPLE_SIZE, format_of, is_binary, printable, printable_name, whole_format
from .workspace import Workspace

_DIFF_SECONDS = 1.0
"""Seconds to spend on comparing changed files line by line."""

_ALL_DIFFS = 4 * DIFF_LIMIT
"""Most characters of all diffs of a proposal."""

_EVENTS_AT_ONCE = 200

_STRICTEST: tuple[ChangeSort, ...] = ("refused", "protected", "packages", "repository", "ignored", "workspace")
"""Every sort, the one that needs an answer most first."""


class LayerProposal:
    """The changes of one layer, as the pipeline asks about them; implements `protocol.trial.PendingChanges`."""

    def __init__(
        self, workspace: Workspace, layer: Layer, found: LayerChanges, emit: Callable[[str, JsonObject], None]
    ) -> None:
        """
        Args:
            layer: the layer, in which nothing runs any more.
        """
        self._workspace = workspace
        self._layer = layer
        self._found: LayerChanges = found
        self._changes = {change.path: change for change in found.changes}
        self._emit = emit
        self.proposed = self._proposal(found)
        """The changes as a question shows them."""

    @classmethod
    async def read(
        cls, workspace: Workspace, layer: Layer, emit: Callable[[str, JsonObject], None]
    ) -> "LayerProposal | None":
        """Return the changes of a layer; remove the layer and return None if nothing is left to decide."""

        def look() -> LayerProposal | None:
            proposal = cls(workspace, layer, layer.changes(), emit)
            if not proposal.proposed.is_empty:
                return proposal
            layer.discard()
            return None

        return await run_shielded_in_thread(look)

    @classmethod
    async def finish(
        cls, workspace: Workspace, layer: Layer, emit: Callable[[str, JsonObject], None]
    ) -> tuple[str, ...]:
        """Finish a keeping that a kill interrupted, report each kept file, and remove the layer.

        Returns:
            What was kept; empty if no keeping had begun.
        """
        report = await run_shielded_in_thread(layer.finish)
        if report is None:
            return ()
        proposal = cls(workspace, layer, LayerChanges(), emit)
        await proposal._report_files(await asyncio.to_thread(proposal._events_of, report, KeepSelection()))
        await run_shielded_in_thread(layer.discard)
        return (*(file.path for file in report.files), *((REPOSITORY,) if report.repository else ()))

    async def refresh(self) -> None:
        """Compare the changes with the workspace again: what other calls kept meanwhile is in conflict."""
        await run_shielded_in_thread(self._read_again)

    def _read_again(self) -> None:
        found = self._layer.changes(again=True)
        # The layer returns the same object if nothing changed meanwhile.
        if found is not self._found:
            self._found = found
            self._changes = {change.path: change for change in found.changes}
            self.proposed = self._proposal(found)

    async def record(self, result: str) -> None:
        """Store the call's result as JSON beside the changes, so that the question survives the end of the program."""
        await run_shielded_in_thread(partial(self._layer.record, result))

    async def keep(self, selection: KeepSelection, result: str = "") -> KeptChanges:
        """Keep a part, report each kept file as `file.changed`, and discard the rest."""
        wanted = selection.model_copy(update={"texts": self._texts(selection)})
        targets = [change.target for path in wanted.paths if (change := self._changes.get(path)) is not None]
        # Sorted: two calls that lock the same files in different orders would wait for each other for ever.
        known = sorted(target for target in targets if self._workspace.versions.last_seen(target) is not None)
        async with AsyncExitStack() as held:
            for target in known:
                await held.enter_async_context(self._workspace.alone_with(target))
            held.enter_context(self._workspace.changing_calls.entered(frozenset(targets)))
            report, events = await run_shielded_in_thread(partial(self._keep, wanted, result))
        await self._report_files(events)
        self._layer.discard()
        return self._outcome(selection, report)

    async def discard(self) -> KeptChanges:
        """Discard everything."""
        self._layer.discard()
        return KeptChanges(discarded=self.proposed.paths)

    # --- the proposal -------------------------------------------------------------------------------------------------

    def _proposal(self, found: LayerChanges) -> ProposedChanges:
        """Return the changes with their diffs. Blocks."""
        # The layer has put all beyond `MOST_FILES` into trees.
        listed = sorted((change for change in found.changes if not change.tree), key=_order)
        grouped: dict[str, list[LayerChange]] = {}
        for change in found.changes:
            if change.tree:
                grouped.setdefault(change.tree, []).append(change)
        deadline, room = time.monotonic() + _DIFF_SECONDS, _ALL_DIFFS
        files: list[ProposedFile] = []
        for change in listed:
            shown, diff = _shown(change, compares=time.monotonic() < deadline)
            shown = shown if len(shown.diff) <= room else shown.model_copy(update={"diff": NO_DIFF, "has_more": True})
            if diff is not None and shown.has_more:
                shown = shown.model_copy(update={"whole_diff": self._stored(diff, len(files))})
            room -= len(shown.diff)
            files.append(shown)
        return ProposedChanges(
            layer=self._layer.id,
            files=tuple(files),
            trees=tuple(_tree(path, members) for path, members in sorted(grouped.items())),
            repository=found.repository,
            repository_files=tuple(change.path for change in found.changes if change.with_repository),
            dropped=found.dropped,
            problem=found.problem,
        )

    def _stored(self, diff: Diff, number: int) -> str:
        """Store a whole diff beside the kept output of commands; return its path, empty if that fails. Blocks."""
        path = self._workspace.spool_dir / f"{self._layer.id}-{number}.diff"
        with suppress(OSError):
            self._workspace.make_spool_dir()
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(diff)
            return str(path)
        return ""

    # --- keeping ------------------------------------------------------------------------------------------------------

    def _texts(self, selection: KeepSelection) -> dict[str, str]:
        """Return the texts with the bytes that a file has in its encoding; invalid ones are lone surrogates."""
        return {path: self._encoded(path, text) for path, text in selection.texts.items()}

    def _encoded(self, path: str, text: str) -> str:
        change = self._changes.get(path)
        content = None if change is None else _content(change.source, is_file=change.new == "file")
        if not content:
            return text
        form = format_of(content[:SAMPLE_SIZE])
        with suppress(ToolError, UnicodeError):
            form = whole_format(form, form.decode(content))
            return form.encode(text).decode("utf-8", "surrogateescape")
        return text

    def _keep(self, wanted: KeepSelection, result: str) -> tuple[KeepReport, list[JsonObject]]:
        report = self._layer.keep(wanted, result)
        return report, self._events_of(report, wanted)

    def _events_of(self, report: KeepReport, selection: KeepSelection) -> list[JsonObject]:
        """Return the data of the events for the kept files. Blocks."""
        diffs = {file.path: file.diff for file in self.proposed.files}
        found: list[JsonObject | None] = []
        for file in report.files:
            is_own = file.path not in selection.texts
            diff = diffs.get(file.path) if is_own else None
            found.append(self._event_of(file, diff, is_own=is_own, is_shown=file.path in diffs))
        return [data for data in found if data is not None]

    async def _report_files(self, events: Sequence[JsonObject]) -> None:
        for number, data in enumerate(events, start=1):
            self._emit("file.changed", data)
            if number % _EVENTS_AT_ONCE == 0:
                await asyncio.sleep(0)  # Thousands of files must not hold up the event loop.

    def _event_of(self, file: KeptFile, diff: Diff | None, *, is_own: bool, is_shown: bool) -> JsonObject | None:
        """Return the data of the event for a kept file; None for anything else, such as a directory. Blocks."""
        contents = self._workspace.contents
        before, old = _before(file, contents)
        # The content after it is only needed to show or redo a change, which no one does with thousands of files.
        after = None if file.after is None else read_file_state(file.after, contents if is_shown else None)
        if before is None and after is None:
            return None
        if diff is None and old is not None and file.after is not None:
            shown, new = printable_name(file.path).lstrip("/"), _content(file.after, is_file=True)
            diff = None if new is None else diff_between(old, new, (f"a/{shown}", f"b/{shown}"))
        if is_own and before is not None and after is not None:
            self._workspace.versions.remember_own_change(file.target, before.digest, after.digest)
        return TreeChange(file.target, before, after).event_data((diff or NO_DIFF).shortened(MOST_OF_ONE_DIFF))

    def _outcome(self, selection: KeepSelection, report: KeepReport) -> KeptChanges:
        problems = dict(report.problems)
        if REPOSITORY in selection.paths and not report.repository:
            problems.setdefault(REPOSITORY, "it was not kept")

        def is_kept(path: str) -> bool:
            return report.repository if path == REPOSITORY else path not in problems

        kept = tuple(path for path in selection.paths if is_kept(path))
        discarded = tuple(path for path in self.proposed.paths if path not in set(kept))
        return KeptChanges(
            kept=kept,
            discarded=discarded,
            problems=tuple(f"{printable_name(path)}: {reason}" for path, reason in problems.items()),
        )


def _order(change: LayerChange) -> tuple[int, int, str]:
    """Return the key by which changes are listed: those that matter most first, then deleted and new ones."""
    matters = change.sort in ("protected", "refused") or bool(change.conflict)
    return 0 if matters else 1, {"deleted": 0, "added": 1, "changed": 2, "mode": 3}[change.kind], change.path


def _tree(path: str, members: Sequence[LayerChange]) -> ProposedTree:
    sort: ChangeSort = next(one for one in _STRICTEST if any(change.sort == one for change in members))
    size = sum(change.size for change in members)
    reasons = {run_later(change.path) for change in members} if sort == "protected" else {""}
    runs_later = reasons.pop() if len(reasons) == 1 else run_later(path)
    return ProposedTree(path=path, sort=sort, files=len(members), size=size, runs_later=runs_later)


def _shown(change: LayerChange, *, compares: bool) -> tuple[ProposedFile, Diff | None]:
    """Return a change as a question shows it, and its whole diff. Blocks."""
    is_refused = change.sort == "refused"
    file = ProposedFile(
        path=change.path,
        kind=change.kind,
        sort=change.sort,
        runs_later=run_later(change.path) if change.sort == "protected" else "",
        conflict=change.conflict,
    )
    if is_refused:
        return file.model_copy(update={"note": change.reason}), None
    old, new = (
        _content(change.target, is_file=change.old == "file"),
        _content(change.source, is_file=change.new == "file"),
    )
    notes = list(filter(None, (_kind_note(change), _mode_note(change))))
    if change.kind == "mode" or not (change.old == "file" or change.new == "file"):
        return file.model_copy(update={"note": " · ".join(notes)}), None
    sizes = _size(change.target, is_file=change.old == "file"), _size(change.source, is_file=change.new == "file")
    if (change.old == "file" and old is None) or (change.new == "file" and new is None):
        words = " · ".join((*notes, f"large, {_bytes(*sizes)}"))
        return file.model_copy(update={"note": words, "has_more": True}), None
    if is_binary((old or b"")[:SAMPLE_SIZE]) or is_binary((new or b"")[:SAMPLE_SIZE]):
        return file.model_copy(update={"note": " · ".join((*notes, f"binary, {_bytes(*sizes)}"))}), None
    shown = printable_name(change.path).lstrip("/")
    names = (NOTHING if old is None else f"a/{shown}", NOTHING if new is None else f"b/{shown}")
    diff = diff_between(old or b"", new or b"", names) if compares else None
    if diff is None:
        notes.append(_bytes(*sizes))
    elif new == b"":
        notes.append("empty")
    words = format_of(new[:SAMPLE_SIZE]).words if new else ""
    whole = NO_DIFF if diff is None else diff  # A diff without lines is whole, too: that of an empty file.
    cut = whole.shortened(MOST_OF_ONE_DIFF)
    shown = file.model_copy(
        update={
            "note": " · ".join(filter(None, (*notes, words))),
            "diff": cut,
            "added": cut.added,
            "removed": cut.removed,
            "has_more": diff is None or cut is not whole,
            "is_text": new is not None and diff is not None,
        }
    )
    return shown, diff


def _kind_note(change: LayerChange) -> str:
    """Return in words what no diff shows: links, directories, and one kind that replaces another."""
    new = f"link to {_link(change.source)}" if change.new == "link" else change.new
    old = f"link to {_link(change.target)}" if change.old == "link" else change.old
    if change.old == change.new == "link":
        return f"{old} → {_link(change.source)}"
    if change.new == "absent":
        return "" if change.old == "file" else f"was a {old}"
    if change.old in ("absent", change.new):
        return {"file": "", "directory": "empty directory" if change.old == "absent" else ""}.get(change.new, new)
    return f"{old} → {new}"


def _mode_note(change: LayerChange) -> str:
    """Return the change of permission bits, or that a new file is a program."""
    if change.new != "file":
        return ""
    if change.old == "absent":
        return "can be run" if change.mode & 0o111 else ""
    with suppress(OSError):
        before = stat.S_IMODE(change.target.lstat().st_mode)
        return f"mode {before:03o} → {change.mode:03o}" if change.old == "file" and before != change.mode else ""
    return ""


def _link(path: Path) -> str:
    with suppress(OSError):
        return printable(os.readlink(path))
    return "?"


def _size(path: Path, *, is_file: bool) -> int | None:
    with suppress(OSError):
        return path.lstat().st_size if is_file else None
    return None


def _bytes(old: int | None, new: int | None) -> str:
    known = [f"{size:,}" for size in (old, new) if size is not None]
    return f"{' → '.join(known)} bytes"


def _content(path: Path, *, is_file: bool) -> bytes | None:
    """Return the content of a regular file that is not too large to be changed as a text. Blocks."""
    with suppress(OSError):
        return read_regular_file(str(path), CHANGE_LIMIT) if is_file and not path.is_symlink() else None
    return None


def _before(file: KeptFile, contents: ContentStore | None) -> tuple[FileState | None, bytes | None]:
    """Return the state of a file before it was kept, and its content if that is not too large. Blocks."""
    content, mode = file.before, file.mode
    if isinstance(content, Path):
        stored = content
        try:
            content = read_regular_file(str(stored), CONTENT_LIMIT)
        except OSError:
            return FileState(digest="", size=_size(stored, is_file=True) or 0, mode=mode, kept=False), None
    if content is None:
        return None, None
    if contents is not None:
        return state_of_content(content, mode, contents), content
    return FileState(digest=digest_of(content), size=len(content), mode=mode, kept=False), content
