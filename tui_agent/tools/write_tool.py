"""The write tool: create a file or replace its whole content."""

import os
from functools import partial

from pydantic import Field

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, PathSubject, Preview, Subject, ToolContext, ToolResult

from .file_change import (
    LoadedFile,
    PlannedChange,
    Target,
    make_change,
    plan_change,
    plan_file_change,
    preview_file_change,
    report_later_change,
    unchanged,
    unseen_change,
)
from .pinned_directory import ResolvedPath
from .text_format import uses_crlf
from .typed_tool import Arguments, PathText, TypedTool
from .unseen_change import UnseenChangeError
from .workspace import Workspace

_DESCRIPTION = """Creates a file, or replaces the whole content of an existing file.
Read an existing file first; the call is refused if the file changed since you read it. Missing directories are created.
An existing file keeps its mode, encoding, byte order mark and line endings. To change part of a file, use edit."""


class WriteArguments(Arguments):
    """Arguments of the write tool."""

    path: PathText = Field(
        description="File to write: absolute, relative to the working directory, or starting with ~."
    )
    content: str = Field(description="The whole new content.")


class WriteTool(TypedTool[WriteArguments]):
    """Tool that creates or replaces a text file, atomically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__("write", _DESCRIPTION, WriteArguments)
        self._workspace = workspace
        self.working_directory = workspace.root

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return self._workspace.with_existing_name(arguments)

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
        return await preview_file_change(
            self._workspace,
            args.path,
            partial(self._plan, args, checked=True),
            partial(self._plan, args, checked=False),
        )

    async def call_later_changes(self, args: WriteArguments) -> str:
        return await report_later_change(self._workspace, args.path)

    async def run(self, args: WriteArguments, context: ToolContext) -> ToolResult:
        async with self._workspace.alone_with(self._workspace.place(args.path, context.targets).path):
            plan_checked = partial(self._plan, args, checked=True)
            plan = await plan_file_change(self._workspace, args.path, plan_checked, context.targets)
            if plan.changes_nothing:
                return unchanged(plan)
            return await make_change(self._workspace, plan, context)

    def _plan(self, args: WriteArguments, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
        """Return the change of a loaded file, or of a new one.

        Raises:
            ToolError: its encoding does not allow the text; or `checked`, and the file was never read or changed since.
        """
        place, shown, notes = target
        if before is None:
            if not self._workspace.root.is_dir():
                notes += ("the working directory was removed; this makes it again",)
            return plan_change(place, shown, None, args.content, args.content.encode(), notes)
        if checked:
            self._refuse_unknown(place, shown, before)
        text = _with_endings_of(before, args.content)
        try:
            content = before.format.encode_change(before.content, text, before.text, text)
        except ToolError as error:
            raise ToolError(f"{shown} was not changed: {error}") from error
        return plan_change(place, shown, before, text, content, notes)

    def _refuse_unknown(self, place: ResolvedPath, shown: str, before: LoadedFile) -> None:
        """Refuse a file that was never read, or changed since it was read.

        Raises:
            ToolError: the call must not overwrite it.
        """
        seen = self._workspace.versions.last_seen(place.path)
        if seen is None:
            raise ToolError(f"{shown} exists, but you have not read it; nothing was written: read it first")
        if unseen := unseen_change(self._workspace, place, before):
            what_to_do = "repeat the call if it is right" if unseen.is_whole else "read it again, then repeat the call"
            words = f"{shown} changed on disk since it was last read; nothing was written: {what_to_do}"
            raise UnseenChangeError(words, unseen)
        if seen.is_partly_seen:
            raise ToolError(f"you have not seen all of what changed in {shown}; nothing was written: read it again")


def _with_endings_of(before: LoadedFile, content: str) -> str:
    """Return `content` with the line endings that most lines of the old text have, if it has any."""
    if "\n" not in before.text:
        return content
    plain = content.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if uses_crlf(before.text) else plain
