"""A change of one file: planned against the file on disk, shown as a diff, then made whole or not at all."""

import asyncio
import os
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.diffs import NOTHING, Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Preview, ToolContext, ToolResult

from .atomic_write import lost_ownership, replace_file
from .content_store import ContentStore
from .file_errors import os_errors_as
from .file_states import TreeChange, state_of_content
from .file_versions import FileVersion, UnseenChange, digest_of
from .pinned_directory import ResolvedPath, open_file
from .text_format import SAMPLE_SIZE, TextFormat, format_of, is_binary, printable, whole_format
from .unified_diff import counts_text, diff_of
from .workspace import Workspace

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
    return await asyncio.to_thread(_decoded, content, status, shown)


def _decoded(content: bytes, status: os.stat_result, shown: str) -> LoadedFile:
    """Return the content of a file as text."""
    if is_binary(content[:SAMPLE_SIZE]):
        raise ToolError(f"{shown} is a binary file of {len(content):,} bytes; only text files can be changed")
    form = format_of(content[:SAMPLE_SIZE])
    text = form.decode(content)
    form = whole_format(form, text)
    try:
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
    """Return the change that replaces the content of a file, with its diff; `diff` replaces that of the text."""
    if diff is None:
        old_name, old_text = (NOTHING, "") if before is None else (f"a/{shown.lstrip('/')}", before.text)
        diff = diff_of(old_text, text, old_name, f"b/{shown.lstrip('/')}")
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
