"""The glob tool: finds files by their names."""

import asyncio
import os
from pathlib import Path

from pydantic import Field

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, PathSubject, Subject, ToolContext, ToolResult

from .file_errors import missing_file_error, told
from .file_listing import list_files
from .glob_pattern import GlobPattern
from .pinned_directory import regular_files
from .search_engine import find_ripgrep
from .text_format import printable
from .typed_tool import Arguments, PathText, TypedTool, WordText
from .workspace import Workspace

MOST_SHOWN = 1_000
"""Files listed in one result."""

_DESCRIPTION = f"""Finds files by name, such as `**/*.py`, `src/*.{{ts,tsx}}` or `docs/**`.
`*` and `?` stand within one name, `**` for any number of directories, `{{a,b}}` for one of several.
Files that .gitignore leaves out are not found, nor symbolic links. At most {MOST_SHOWN:,} files, sorted by path."""


class GlobArguments(Arguments):
    """What to find where."""

    pattern: WordText = Field(description="Pattern, relative to path; ** crosses directories.")
    path: PathText = Field(default=".", description="Directory to look in; the working directory if not given.")


class GlobTool(TypedTool[GlobArguments]):
    """Lists files whose path fits a pattern."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__("glob", _DESCRIPTION, GlobArguments, read_only=True)
        self._workspace = workspace

    def call_accesses(self, args: GlobArguments) -> Accesses:
        return Accesses(searches=frozenset({self._workspace.resolve(_place(args)[0])}))

    def call_subject(self, args: GlobArguments) -> Subject:
        return PathSubject(self._workspace.given(_place(args)[0]), "search")

    def call_summary(self, args: GlobArguments) -> str:
        return args.pattern if args.path == "." else f"{args.pattern} in {args.path}"

    async def run(self, args: GlobArguments, context: ToolContext) -> ToolResult:
        path, text = _place(args)
        place, pattern = self._workspace.place(path, context.targets), GlobPattern.parse(text)
        refuse_no_directory(self._workspace, place.path)
        with told(f"cannot list {self._workspace.display(place.path)}"):
            ripgrep = find_ripgrep(self._workspace.root)
            listing = await list_files(place, self._workspace.root, ripgrep, context.cancellation)
        fitting = await asyncio.to_thread(lambda: [name for name in listing.names if pattern.matches(name)])
        there = await asyncio.to_thread(regular_files, place, fitting[:MOST_SHOWN])
        shown = [self._workspace.display(place.path / name) for name in there]
        return _result(shown, len(fitting), listing.complete, args.pattern)


def refuse_no_directory(workspace: Workspace, root: Path) -> None:
    """Lets directories pass.

    Raises:
        ToolError: there is nothing at that path, or a file.
    """
    shown = workspace.display(root)
    if not os.path.lexists(root):
        raise missing_file_error(root, shown)
    if not os.path.isdir(root):
        raise ToolError(f"{shown} is not a directory")


def _place(args: GlobArguments) -> tuple[str, str]:
    """Directory and pattern; the plain directories an absolute pattern begins with are taken off it."""
    pattern = os.path.expanduser(args.pattern)
    if not pattern.startswith("/"):
        return args.path, pattern
    names = pattern.split("/")
    plain = next((place for place, name in enumerate(names) if any(sign in name for sign in "*?[{")), len(names) - 1)
    return "/".join(names[:plain]) or "/", "/".join(names[plain:]) or "**"


def _result(shown: list[str], found: int, complete: bool, pattern: str) -> ToolResult:
    notes: list[str] = []
    if not found:
        notes.append(f"[no files fit {printable(pattern)}]")
    if found > len(shown):
        notes.append(f"[{len(shown):,} of {found:,} files; narrow the pattern to see the others]")
    if not complete:
        notes.append("[the listing took too long and is not complete; name a directory further down]")
    details: JsonObject = {"files": found, "complete": complete}
    return ToolResult.of_text("\n".join([*shown, *notes]), details=details)
