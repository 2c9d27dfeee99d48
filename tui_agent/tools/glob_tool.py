"""The glob tool: find files by name."""

import asyncio
import os
from pathlib import Path

from pydantic import Field

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, PathSubject, Subject, ToolContext, ToolResult

from .file_errors import missing_file_error, os_errors_as
from .pinned_directory import ResolvedPath
from .search.file_listing import UNREADABLE_NOTE, existing, list_matching, list_matching_ignored, without_denied
from .search.path_patterns import GlobPattern
from .search.search_engine import find_ripgrep
from .text_format import counted, printable
from .typed_tool import Arguments, PlaceText, WordText
from .workspace import Workspace, WorkspaceTool

MOST_SHOWN = 1_000

MOST_IGNORED_NAMED = 5
"""Most ignored files that a note names."""

_DESCRIPTION = f"""Finds files by name, for example `**/*.py`, `src/*.{{ts,tsx}}` or `docs/**`.
`*` and `?` match within one name, `**` matches any number of directories, `{{a,b}}` matches either.
A pattern that exists as a path is that path, also with brackets in its name.
Lists at most {MOST_SHOWN:,} files, sorted by path; symbolic links are left out, and files that .gitignore excludes, \
unless the pattern or `path` names them or their directory."""


class GlobArguments(Arguments):
    """Arguments of the glob tool."""

    pattern: WordText = Field(description="Pattern for file paths relative to `path`; ** crosses directories.")
    path: PlaceText = Field(default=".", description="Directory to search; by default the working directory.")


class GlobTool(WorkspaceTool[GlobArguments]):
    """Tool that lists the files whose path matches a pattern."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace, "glob", _DESCRIPTION, GlobArguments, read_only=True)

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        prepared = super().prepare_arguments(arguments)
        if not isinstance(pattern := prepared.get("pattern"), str) or not os.path.isabs(pattern):
            return prepared
        # An absolute pattern names its directory itself.
        place, rest = _split(pattern)
        found = self._workspace.in_trial(place)
        return prepared if found == place else prepared | {"path": found, "pattern": rest}

    def call_accesses(self, args: GlobArguments) -> Accesses:
        return Accesses(searches=frozenset({self._workspace.resolve(_place(args)[0])}))

    def call_subject(self, args: GlobArguments) -> Subject:
        return PathSubject(self._workspace.given(_place(args)[0]), "search", leaves_out_denied=True)

    def call_summary(self, args: GlobArguments) -> str:
        return args.pattern if args.path == "." else f"{args.pattern} in {args.path}"

    async def run(self, args: GlobArguments, context: ToolContext) -> ToolResult:
        path, text = _place(args)
        place, pattern = self._workspace.place(path, context.targets), GlobPattern.parse(text)
        refuse_no_directory(self._workspace, place.path)
        with os_errors_as(f"cannot list {self._workspace.display(place.path)}"):
            ripgrep = find_ripgrep(self._workspace.root)
            where = (place, self._workspace.root, ripgrep, pattern, context.cancellation)
            listing = await list_matching(*where)
            # A second listing only where the first has nothing.
            ignored = () if listing.names else await list_matching_ignored(*where)
            matching, denied = await asyncio.to_thread(without_denied, listing.names, context.is_denied)
            left_out, _ = await asyncio.to_thread(without_denied, ignored, context.is_denied)
            # ripgrep may have followed a link that replaced a directory for a moment.
            matching[:MOST_SHOWN] = await asyncio.to_thread(existing, place, matching[:MOST_SHOWN])
            left_out[:MOST_SHOWN] = await asyncio.to_thread(existing, place, left_out[:MOST_SHOWN])
        shown = [self._shown(place, name) for name in matching[:MOST_SHOWN]]
        nothing = [] if matching else [_nothing_note(args.pattern, [self._shown(place, name) for name in left_out])]
        if nothing and (link := await asyncio.to_thread(_first_link, place.path, pattern)):
            nothing.append(f"[{self._shown(place, link)} is a symbolic link; to look into it, name it in path]")
        nothing += [UNREADABLE_NOTE] if nothing and listing.has_errors else []
        return _result(shown, len(matching), listing.complete, [*denied, *nothing])

    def _shown(self, place: ResolvedPath, name: str) -> str:
        return self._workspace.display(place.path / name) + ("/" if name.endswith("/") else "")


def refuse_no_directory(workspace: Workspace, root: Path) -> None:
    """Refuse a path that is not a directory.

    Raises:
        ToolError: the path does not exist, or is a file.
    """
    shown = workspace.display(root)
    if not os.path.lexists(root):
        raise missing_file_error(root, shown)
    if not os.path.isdir(root):
        raise ToolError(f"{shown} is not a directory")


def _place(args: GlobArguments) -> tuple[str, str]:
    """Return directory and pattern; an absolute pattern is split after its leading parts without wildcards."""
    pattern = os.path.expanduser(args.pattern)
    return _split(pattern) if pattern.startswith("/") else (args.path, pattern)


def _split(pattern: str) -> tuple[str, str]:
    names = pattern.split("/")
    plain = next((place for place, name in enumerate(names) if any(sign in name for sign in "*?[{")), len(names) - 1)
    return "/".join(names[:plain]) or "/", "/".join(names[plain:]) or "**"


def _first_link(start: Path, pattern: GlobPattern) -> str:
    """Return the first symbolic link among the directories that a pattern names; empty without any. Blocks."""
    for base in (*pattern.bases, *pattern.folders):
        names = base.split("/")
        for count in range(1, len(names) + 1):
            if os.path.islink(start / (name := "/".join(names[:count]))):
                return name
    return ""


def _nothing_note(pattern: str, ignored: list[str]) -> str:
    """Return a note that no files match a pattern, except ignored ones."""
    if not ignored:
        return f"[no files match {printable(pattern)}]"
    named = ", ".join(ignored[:MOST_IGNORED_NAMED]) + (", …" if len(ignored) > MOST_IGNORED_NAMED else "")
    do = "does" if len(ignored) == 1 else "do"
    words = f"but {counted(len(ignored), 'file')} that .gitignore excludes {do}: {named}"
    return f"[no files match {printable(pattern)}, {words}]"


def _result(shown: list[str], found: int, complete: bool, notes: list[str]) -> ToolResult:
    if found > len(shown):
        notes.append(f"[{len(shown):,} of {found:,} files; narrow the pattern to see the others]")
    if not complete:
        notes.append("[the listing is incomplete because it took too long; search a smaller directory]")
    details: JsonObject = {"outcome": counted(found, "file"), "files": found, "complete": complete}
    return ToolResult.of_text("\n".join([*shown, *notes]), details=details)
