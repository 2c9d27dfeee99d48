"""The write tool: create a file or replace its whole content."""

import os
from pathlib import Path

from pydantic import Field

from tui_agent.protocol.errors import ToolError

from .file_change import FileArguments, FileChangeTool, LoadedFile, PlannedChange, Target, plan_change
from .file_versions import UnseenChangeError
from .pinned_directory import ResolvedPath
from .text_format import uses_crlf
from .typed_tool import PathText
from .workspace import Workspace

_DESCRIPTION = """Creates a file, or replaces the whole content of an existing file.
Read an existing file first; the call is refused if the file changed since you read it. Missing directories are created.
An existing file keeps its mode, encoding, byte order mark and line endings. To change part of a file, use edit."""


class WriteArguments(FileArguments):
    """Arguments of the write tool."""

    path: PathText = Field(
        description="File to write: absolute, relative to the working directory, or starting with ~."
    )
    content: str = Field(description="The whole new content.")


class WriteTool(FileChangeTool[WriteArguments]):
    """Tool that creates or replaces a text file, atomically."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace, "write", _DESCRIPTION, WriteArguments)

    def _notices(self, path: Path) -> bool:
        return os.path.lexists(path)

    def call_summary(self, args: WriteArguments) -> str:
        lines = args.content.count("\n") + (not args.content.endswith("\n") and bool(args.content))
        return f"{args.path} ({lines:,} {'line' if lines == 1 else 'lines'})"

    def _plan(self, args: WriteArguments, target: Target, before: LoadedFile | None, *, checked: bool) -> PlannedChange:
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
        """Refuse a file that was never read, or changed since it was read."""
        seen = self._workspace.versions.last_seen(place.path)
        if seen is None:
            raise ToolError(f"{shown} exists, but you have not read it; nothing was written: read it first")
        if unseen := self._unseen_change(place, before):
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
