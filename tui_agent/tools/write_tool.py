"""The write tool: gives a file a whole new content."""

import asyncio
import os
from collections.abc import Sequence

from pydantic import Field

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import Accesses, JudgedTarget, PathSubject, Preview, Subject, ToolContext, ToolResult

from .file_change import (
    LoadedFile,
    PlannedChange,
    load_file,
    make_change,
    plan_change,
    refuse_changed,
    target_of,
    unchanged,
)
from .pinned_directory import ResolvedPath
from .text_format import TextFormat, uses_crlf
from .typed_tool import Arguments, PathText, TypedTool
from .workspace import Workspace

_DESCRIPTION = """Writes a file: makes a new one, or replaces the whole content of an existing one.
An existing file must have been read first, and is not overwritten if it changed since. Missing directories are made.
Mode, encoding, byte order mark and line endings of an existing file are kept. To change a part of a file, use edit."""


class WriteArguments(Arguments):
    """What to write where."""

    path: PathText = Field(description="File to write: absolute, from ~, or relative to the working directory.")
    content: str = Field(description="The whole new content.")


class WriteTool(TypedTool[WriteArguments]):
    """Creates or replaces a text file, atomically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__("write", _DESCRIPTION, WriteArguments)
        self._workspace = workspace

    def call_accesses(self, args: WriteArguments) -> Accesses:
        path = frozenset({self._workspace.resolve(args.path)})
        return Accesses(reads=path, writes=path)

    def call_subject(self, args: WriteArguments) -> Subject:
        return PathSubject(self._workspace.given(args.path), "write")

    def call_notices_changes(self, args: WriteArguments) -> bool:
        return os.path.lexists(self._workspace.resolve(args.path))

    def call_summary(self, args: WriteArguments) -> str:
        lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
        return f"{args.path} ({lines:,} {'line' if lines == 1 else 'lines'})"

    async def call_preview(self, args: WriteArguments) -> Preview:
        return (await asyncio.to_thread(self._plan, args, checked=False)).preview()

    async def run(self, args: WriteArguments, context: ToolContext) -> ToolResult:
        async with self._workspace.alone_with(self._workspace.place(args.path, context.targets).path):
            plan = await asyncio.to_thread(self._plan, args, context.targets)
            if plan.changes_nothing:
                return unchanged(plan)
            return await make_change(self._workspace, plan, context)

    def _plan(
        self, args: WriteArguments, targets: Sequence[JudgedTarget] = (), *, checked: bool = True
    ) -> PlannedChange:
        """What the call would do; a preview is not `checked`, as the file may yet be read before the call runs."""
        place, shown, notes = target_of(self._workspace, args.path, targets)
        before = load_file(place, shown)
        if before is None:
            return plan_change(place, shown, None, args.content, args.content.encode(), notes)
        if checked:
            self._refuse_unknown(place, shown, before)
        text = _with_endings_of(before, args.content)
        try:
            content = before.format.encode(text)
        except UnicodeEncodeError:
            content = TextFormat().encode(text)
            notes += (f"the file was {before.format.words}, which cannot hold the new text; it is UTF-8 now",)
        return plan_change(place, shown, before, text, content, notes)

    def _refuse_unknown(self, place: ResolvedPath, shown: str, before: LoadedFile) -> None:
        """Lets a file pass that was read, and is as it was then."""
        if self._workspace.versions.last_seen(place.path) is None:
            words = "read it first, so that nothing unknown is overwritten"
            raise ToolError(f"{shown} exists and was never read; {words}")
        refuse_changed(self._workspace, place, shown, before)


def _with_endings_of(before: LoadedFile, content: str) -> str:
    """`content` with the line endings most lines of the old text have; as it is where the old text has no lines."""
    if "\n" not in before.text:
        return content
    plain = content.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if uses_crlf(before.text) else plain
