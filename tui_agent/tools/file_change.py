"""Changes of one file: planned, shown, then written whole; and the base class of the tools that make them."""

import asyncio
import os
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.diffs import NOTHING, Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, PathSubject, Preview, PreviewError, Subject, ToolContext, ToolResult

from .atomic_write import lost_ownership, replace_file
from .file_errors import os_errors_as
from .file_states import ContentStore, TreeChange, state_of_content
from .file_versions import FileVersion, UnseenChange, UnseenChangeError, digest_of, find_unseen_change
from .pinned_directory import ResolvedPath, open_file
from .text_format import SAMPLE_SIZE, TextFormat, format_of, is_binary, printable, whole_format
from .typed_tool import Arguments, PathText
from .unified_diff import counts_text, diff_of
from .workspace import Workspace, WorkspaceTool

CHANGE_LIMIT = 16 * 1024 * 1024
"""Largest file in bytes that write and edit change."""

DIFF_LIMIT = 60_000
"""Most characters of a diff in events and details; previews show the whole diff."""


class Target(NamedTuple):
    """The file that a call names."""

    place: ResolvedPath
    shown: str
    notes: tuple[str, ...]
    """A note if a symbolic link leads to it."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The whole content of an existing text file."""

    text: str
    """The text with its line endings, without byte order mark."""
    format: TextFormat
    status: os.stat_result
    version: FileVersion

    @property
    def content(self) -> bytes:
        """The content as it is in the file."""
        return self.format.encode(self.text)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The change a call would make to a file."""

    place: ResolvedPath
    shown: str
    before: LoadedFile | None
    """None: the file does not exist yet."""
    content: bytes
    """The whole new content, encoded."""
    diff: Diff
    notes: tuple[str, ...] = ()
    """Remarks that the diff does not show, a sentence each."""
    unseen: UnseenChange | None = None
    """A change of the file elsewhere that the model has not seen; its result reports it."""

    @property
    def change(self) -> Literal["created", "modified"]:
        """Kind of the change, as in `file.changed`."""
        return "created" if self.before is None else "modified"

    @property
    def path(self) -> str:
        """Path of the file, for events and details."""
        return printable(str(self.place.path))

    @property
    def changes_nothing(self) -> bool:
        """True if the file already has exactly this content."""
        return self.before is not None and self.before.version.digest == digest_of(self.content)

    def preview(self) -> Preview:
        """Return the change as the approval dialog shows it."""
        return Preview(kind="diff", text=self.diff, path=str(self.place.path), note="\n".join(self.notes))


async def load_file(place: ResolvedPath, shown: str) -> LoadedFile | None:
    """Read a whole text file; return None if it does not exist.

    Raises:
        ToolError: it is not a regular file, too large, binary, or not readable.
    """
    try:
        with os_errors_as(f"cannot read {shown}"):
            async with open_file(place.path, shown, place=place) as (file, status):
                if status.st_size > CHANGE_LIMIT:
                    too_large = f"the limit is {CHANGE_LIMIT:,}: change it with a program run by bash"
                    raise ToolError(f"{shown} has {status.st_size:,} bytes; {too_large}")
                content = await file.read(CHANGE_LIMIT + 1)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    # Detecting an encoding may take a tenth of a second.
    return await asyncio.to_thread(_decoded, content, status, shown)


def _decoded(content: bytes, status: os.stat_result, shown: str) -> LoadedFile:
    """Return the content of a file as text."""
    if is_binary(content[:SAMPLE_SIZE]):
        raise ToolError(f"{shown} is a binary file of {len(content):,} bytes; only text files can be changed")
    form = format_of(content[:SAMPLE_SIZE])
    text = form.decode(content)
    form = whole_format(form, text)
    try:
        # Some encodings have two codes for a character: writing the text would change bytes that no one edited.
        is_exact = form.encode(text) == content
    except UnicodeEncodeError:
        is_exact = False
    if not is_exact:
        how = "convert it first, such as with iconv -f ENCODING -t UTF-8"
        raise ToolError(f"{shown} is not valid {form.words} throughout, so it cannot be written back exactly; {how}")
    return LoadedFile(text, form, status, FileVersion.of(status, digest_of(content), content))


def plan_change(
    place: ResolvedPath,
    shown: str,
    before: LoadedFile | None,
    text: str,
    content: bytes,
    notes: tuple[str, ...] = (),
    diff: Diff | None = None,
) -> PlannedChange:
    """Return the change that replaces the content of a file, with its diff.

    Args:
        shown: its path in the diff.
        before: its present content; None: the call creates it.
        text: its new text, for the diff.
        content: the same as bytes, which are written.
        notes: notes for the user, to which one about hard links is added.
        diff: replaces the diff of the texts.
    """
    if diff is None:
        old_name, old_text = (NOTHING, "") if before is None else (f"a/{shown.lstrip('/')}", before.text)
        diff = diff_of(old_text, text, old_name, f"b/{shown.lstrip('/')}")
    # Replacing gives the name to a new file, of which the other names know nothing.
    if before is not None and before.status.st_nlink > 1:
        notes += (f"the file had {before.status.st_nlink} hard links; the others keep the old content",)
    return PlannedChange(place, shown, before, content, diff, notes)


async def make_change(workspace: Workspace, plan: PlannedChange, context: ToolContext) -> ToolResult:
    """Write a planned change, remember the new version, emit `file.changed`.

    A cancellation while the file is being replaced takes effect after the write is complete and reported.

    Raises:
        ToolError: the file could not be written; nothing was changed.
    """
    written: list[os.stat_result] = []
    diff = plan.diff.shortened(DIFF_LIMIT)
    event: JsonObject = {
        "path": plan.path,
        "change": plan.change,
        "diff": diff,
        "added": diff.added,
        "removed": diff.removed,
    }
    counts = " ".join([*([f"+{diff.added}"] if diff.added else []), *([f"−{diff.removed}"] if diff.removed else [])])
    outcome = counts or "no lines changed" if plan.before else f"new file {counts or '(empty)'}"
    details: JsonObject = {"outcome": outcome, **event}

    def work() -> None:
        with os_errors_as(f"cannot write {plan.shown}; nothing was changed"):
            before = None if plan.before is None else plan.before.status
            status = replace_file(plan.place, plan.content, before, plan.shown)
        if workspace.contents is not None:
            event.update(_tree_change(plan, status, workspace.contents).event_data(diff))
        workspace.versions.remember(plan.place.path, _new_version(workspace, plan, status))
        written.append(status)

    context.cancellation.raise_if_set()
    try:
        with workspace.changing_calls.entered(frozenset({plan.place.path})):
            # A thread cannot be stopped: without the shield its change would happen and be reported by no one.
            await run_shielded_in_thread(work)
    finally:
        if written:
            context.emit("file.changed", event)
    verb = "Created" if plan.before is None else "Changed"
    lost = lost_ownership(plan.before.status, written[0]) if plan.before is not None else ""
    notes = "".join(f"\n[{note}]" for note in filter(None, (*plan.notes, lost, *_unseen_note(plan))))
    return ToolResult.of_text(f"{verb} {plan.shown} ({counts_text(diff)}).{notes}", details=details)


def _new_version(workspace: Workspace, plan: PlannedChange, status: os.stat_result) -> FileVersion:
    """Return the version that a planned change made; as much of it is known to the model as of the one before."""
    version = FileVersion.of(status, digest_of(plan.content), plan.content)
    seen = workspace.versions.last_seen(plan.place.path)
    partly = seen is not None and seen.is_partly_seen if plan.unseen is None else not plan.unseen.is_whole
    return replace(version, is_partly_seen=partly)


def _unseen_note(plan: PlannedChange) -> tuple[str, ...]:
    if plan.unseen is None:
        return ()
    return (f"{plan.shown} had also changed on disk since it was last read; that change stays; {plan.unseen.words}",)


def _tree_change(plan: PlannedChange, status: os.stat_result, contents: ContentStore) -> TreeChange:
    """Return the change with the file's states before and after, and store both contents."""
    before = None
    if plan.before is not None:
        before = state_of_content(plan.before.content, plan.before.status.st_mode, contents)
    return TreeChange(plan.place.path, before, state_of_content(plan.content, status.st_mode, contents))


class FileArguments(Arguments):
    """Arguments of a tool that changes one file."""

    path: PathText


FileArgs = TypeVar("FileArgs", bound=FileArguments)


class FileChangeTool(WorkspaceTool[FileArgs]):
    """Tool that changes a text file, atomically."""

    @abstractmethod
    def _plan(self, args: FileArgs, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
        """Return the change of a loaded file, or of a new one. Called in a thread: a comparison can take seconds."""

    def call_accesses(self, args: FileArgs) -> Accesses:
        path = frozenset({self._workspace.resolve(args.path)})
        return Accesses(reads=path, writes=path)

    def call_subject(self, args: FileArgs) -> Subject:
        return PathSubject(self._workspace.given(args.path), "write")

    async def call_preview(self, args: FileArgs) -> Preview:
        """Return the change that a call would make now.

        Raises:
            PreviewError: only the version of the file keeps the call from succeeding; another call may still read it.
            ToolError: the call would fail for another reason.
        """
        try:
            return (await self._planned(args)).preview()
        except ToolError as error:
            try:
                # The same call may succeed once the file is read again, so the user sees what it would do.
                preview = (await self._planned(args, checked=False)).preview()
            except ToolError:
                raise error from None
            unseen = error.unseen if isinstance(error, UnseenChangeError) else None
            reported = partial(unseen.count_as_seen, self._workspace.versions) if unseen is not None else None
            raise PreviewError(str(error), preview, reported) from error

    @abstractmethod
    def _notices(self, path: Path) -> bool:
        """Return True if a call itself refuses a file that changed since the model read it."""

    def notices_changes(self, arguments: JsonObject) -> bool:
        args = self._parsed(arguments)
        return args is not None and self._notices(self._workspace.resolve(args.path))

    async def later_changes(self, arguments: JsonObject) -> str:
        args = self._parsed(arguments)
        path = None if args is None else self._workspace.resolve(args.path)
        if path is None or self._workspace.versions.last_seen(path) is None:
            return ""
        place, shown = ResolvedPath(path), self._workspace.display(path)
        async with self._workspace.alone_with(path):
            try:
                now = await load_file(place, shown)
            except ToolError:
                return ""
            unseen = await asyncio.to_thread(self._unseen_change, place, now) if now is not None else None
            if unseen is None:
                return ""
            unseen.count_as_seen(self._workspace.versions)
        return f"{shown} was changed after this call, by a hook or another program; {unseen.words}"

    async def run(self, args: FileArgs, context: ToolContext) -> ToolResult:
        async with self._workspace.alone_with(self._workspace.place(args.path, context.targets).path):
            try:
                plan = await self._planned(args, context)
            except UnseenChangeError as error:
                error.unseen.count_as_seen(self._workspace.versions)
                raise
            if not plan.changes_nothing:
                return await make_change(self._workspace, plan, context)
        return ToolResult.of_text(
            f"{plan.shown} already has exactly this content; nothing was written.",
            details={"outcome": "no change", "path": plan.path, "change": "none", "diff": ""},
        )

    async def _planned(
        self, args: FileArgs, context: ToolContext | None = None, *, checked: bool = True
    ) -> PlannedChange:
        target = await asyncio.to_thread(self._target, args.path, context)
        before = await load_file(target.place, target.shown)
        return await asyncio.to_thread(self._plan, args, target, before, checked=checked)

    def _target(self, path: str, context: ToolContext | None) -> Target:
        """Return the file that a call names. Blocks."""
        place = self._workspace.place(path, () if context is None else context.targets)
        resolved = place.path
        shown = self._workspace.display(resolved)
        if os.path.isdir(resolved):
            raise ToolError(f"{shown} is a directory; name a file")
        if path.endswith(os.sep):
            raise ToolError(f"{printable(path)} ends in a slash, so it names a directory; name a file")
        named = Path(os.path.normpath(os.path.join(self._workspace.root, self._workspace.given(path))))
        linked = f"{printable(path)} leads through a symbolic link to {shown}, which is the file changed"
        return Target(place, shown, (linked,) if named != resolved else ())

    def _unseen_change(self, place: ResolvedPath, now: LoadedFile) -> UnseenChange | None:
        """Return how a loaded file differs from the version that the model knows; None if it does not."""
        return find_unseen_change(self._workspace.versions, place.path, now.version, now.text)
