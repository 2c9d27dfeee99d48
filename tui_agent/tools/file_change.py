"""A change of one file: planned against what is on disk, shown as a difference, then made at once or not at all."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import JudgedTarget, Preview, ToolContext, ToolResult

from .atomic_write import replace_file
from .content_store import ContentStore
from .file_errors import told
from .file_states import TreeChange, state_of_content
from .file_versions import FileVersion, describe_change, digest_of
from .pinned_directory import ResolvedPath, open_regular_file
from .shielded_thread import run_shielded_in_thread
from .text_format import SAMPLE_SIZE, TextFormat, format_of, is_binary, printable
from .unified_diff import Diff, diff_of
from .workspace import Workspace

CHANGE_LIMIT = 16 * 1024 * 1024
"""Largest file in bytes that is changed; larger ones are for programs run by bash."""

DIFF_LIMIT = 60_000
"""Most characters of a difference in events and details; previews show all of it."""


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """An existing text file, as a whole."""

    text: str
    """Without byte order mark, line endings as they are."""
    format: TextFormat
    status: os.stat_result
    version: FileVersion


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What a call would do to a file."""

    place: ResolvedPath
    shown: str
    before: LoadedFile | None
    """None: the file does not exist yet."""
    content: bytes
    diff: Diff
    notes: tuple[str, ...] = ()
    """What one has to know beside the difference, a sentence each."""

    @property
    def change(self) -> Literal["created", "modified"]:
        """What happens to the file."""
        return "created" if self.before is None else "modified"

    @property
    def path(self) -> str:
        """Where the file is, for events and details."""
        return printable(str(self.place.path))

    @property
    def changes_nothing(self) -> bool:
        """Whether the file already holds exactly this content."""
        return self.before is not None and self.before.version.digest == digest_of(self.content)

    def preview(self) -> Preview:
        """The change for the person who is asked."""
        return Preview(kind="diff", text=self.diff.text, path=str(self.place.path), note="\n".join(self.notes))


def target_of(
    workspace: Workspace, path: str, targets: Sequence[JudgedTarget] = ()
) -> tuple[ResolvedPath, str, tuple[str, ...]]:
    """The file a call means: where it was judged to be, as shown, and a note where a symbolic link led there.

    Raises:
        ToolError: the name can only be a directory's.
    """
    place = workspace.place(path, targets)
    resolved = place.path
    shown = workspace.display(resolved)
    if os.path.isdir(resolved):
        raise ToolError(f"{shown} is a directory; name a file")
    if path.endswith(os.sep):
        raise ToolError(f"{printable(path)} ends in a slash, as names of directories do; name a file")
    named = Path(os.path.normpath(os.path.join(workspace.root, workspace.given(path))))
    linked = f"{printable(path)} leads through a symbolic link: the file changed is {shown}"
    return place, shown, (linked,) if named != resolved else ()


def load_file(place: ResolvedPath, shown: str) -> LoadedFile | None:
    """Reads a whole text file; None where there is none. Blocks.

    Raises:
        ToolError: it is no regular file, too large, binary, or not readable.
    """
    try:
        with told(f"cannot read {shown}"), open_regular_file(place.path, shown, place=place) as (descriptor, status):
            if status.st_size > CHANGE_LIMIT:
                too_large = f"files over {CHANGE_LIMIT:,} are changed with programs run by bash"
                raise ToolError(f"{shown} has {status.st_size:,} bytes; {too_large}")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(CHANGE_LIMIT + 1)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    if is_binary(content[:SAMPLE_SIZE]):
        raise ToolError(f"{shown} is a binary file of {len(content):,} bytes; it is not changed as text")
    form = format_of(content[:SAMPLE_SIZE])
    return LoadedFile(form.decode(content), form, status, FileVersion.of(status, digest_of(content), content))


def refuse_changed(workspace: Workspace, place: ResolvedPath, shown: str, now: LoadedFile) -> None:
    """Lets a file pass that is as it was last read, or was never read.

    Raises:
        ToolError: it changed since; the text says what changed.
    """
    seen = workspace.versions.last_seen(place.path)
    if seen is not None and not seen.is_same_as(now.version):
        changes = describe_change(seen, now.version)
        what_to_do = "nothing was written: read it again, then repeat"
        raise ToolError(f"{shown} changed on disk since it was last read; {what_to_do}; {changes}")


def plan_change(
    place: ResolvedPath, shown: str, before: LoadedFile | None, text: str, content: bytes, notes: tuple[str, ...] = ()
) -> PlannedChange:
    """The change that gives a file a new text, with its difference."""
    old_name, old_text = ("/dev/null", "") if before is None else (f"a/{shown.lstrip('/')}", before.text)
    diff = diff_of(old_text, text, old_name, f"b/{shown.lstrip('/')}")
    if before is not None and before.status.st_nlink > 1:
        notes += (f"the file had {before.status.st_nlink} hard links; the others keep the old content",)
    return PlannedChange(place, shown, before, content, diff, notes)


async def make_change(workspace: Workspace, plan: PlannedChange, context: ToolContext) -> ToolResult:
    """Writes a planned change, remembers the new version, tells `file.changed`.

    A cancellation that comes while the file is being replaced does not stop it half way: it is told, then the
    cancellation goes on.

    Raises:
        ToolError: the file could not be written; nothing was changed.
    """
    written: list[os.stat_result] = []
    diff = plan.diff.shortened(DIFF_LIMIT)
    details: JsonObject = {"path": plan.path, "change": plan.change, "diff": diff.text}
    event = dict(details)

    def work() -> None:
        with told(f"cannot write {plan.shown}; nothing was changed"):
            before = None if plan.before is None else plan.before.status
            status = replace_file(plan.place, plan.content, before, plan.shown)
        if workspace.contents is not None:
            event.update(_recorded_change(plan, status, workspace.contents).event_data(diff))
        version = FileVersion.of(status, digest_of(plan.content), plan.content)
        workspace.versions.remember(plan.place.path, version)
        written.append(status)

    context.cancellation.raise_if_set()
    try:
        await run_shielded_in_thread(work)
    finally:
        if written:
            context.emit("file.changed", event)
    details |= {"added": diff.added, "removed": diff.removed}
    verb = "Created" if plan.before is None else "Changed"
    notes = "".join(f"\n[{note}]" for note in plan.notes)
    return ToolResult.of_text(f"{verb} {plan.shown} ({diff.counts}).{notes}", details=details)


def unchanged(plan: PlannedChange) -> ToolResult:
    """The result of a call that asks for what is already there."""
    return ToolResult.of_text(
        f"{plan.shown} already holds exactly this; nothing was written.",
        details={"path": plan.path, "change": "none", "diff": ""},
    )


def _recorded_change(plan: PlannedChange, status: os.stat_result, contents: ContentStore) -> TreeChange:
    """The change with what the file was and is, both kept."""
    before = None
    if plan.before is not None:
        content = plan.before.format.encode(plan.before.text)
        before = state_of_content(content, plan.before.status.st_mode, contents)
    return TreeChange(plan.place.path, before, state_of_content(plan.content, status.st_mode, contents))
