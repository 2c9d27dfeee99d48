"""The grep tool: search the content of files."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import Field

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, PathSubject, Subject, ToolContext, ToolResult

from .file_errors import missing_file_error, os_errors_as
from .line_pages import Line, LineRequest, read_lines_blocking
from .pinned_directory import ResolvedPath, open_file, open_regular_file
from .search.content_search import FileHits, SearchResult, Unsearched, find_unsearched, search_contents
from .search.file_listing import (
    UNREADABLE_NOTE,
    FileListing,
    list_files,
    list_ignored,
    list_matching,
    list_matching_ignored,
    without_denied,
)
from .search.path_patterns import GlobPattern
from .search.search_engine import Ripgrep, SearchMode, SearchRequest, find_ripgrep
from .text_format import counted, printable
from .typed_tool import Arguments, PlaceText, WordText
from .workspace import Workspace, WorkspaceTool

SHOWN_WIDTH = 400

SHOWN_CHARACTERS = 40_000
"""Most characters of a result; below the limit at which the engine cuts results."""

_KEPT_WIDTH = 20_000

_BEFORE_MATCH = 100
"""Characters shown before the match of a long line."""

_DESCRIPTION = """Searches files for a regular expression, line by line.
`output_mode` "content" shows matching lines as path:line:text (context lines as path-line-text),
"files_with_matches" only the paths, "count" the number of matching lines in each file.
`glob` restricts the search: *.py matches at any depth, src/**/*.ts from `path`, !*.min.js excludes files.
Binary files and symbolic links are not searched, nor files that .gitignore excludes, unless `path` or `glob` names \
them or their directory."""


class GrepArguments(Arguments):
    """Arguments of the grep tool."""

    pattern: WordText = Field(description="Regular expression; a match cannot span lines.")
    path: PlaceText = Field(default=".", description="File or directory to search; by default the working directory.")
    glob: str = Field(default="", description="Pattern for the files to search; by default all files.")
    output_mode: SearchMode = Field(default="content", description="Form of the result.")
    context: int = Field(default=0, ge=0, le=50, description="Lines of context before and after each match.")
    ignore_case: bool = Field(default=False, description="Ignore the difference between upper and lower case.")
    limit: int = Field(default=200, ge=1, le=5_000, description="Most matching lines, or files, to show.")


@dataclass(frozen=True, slots=True)
class _Found:
    """Result of a search."""

    place: ResolvedPath
    listing: FileListing
    denied: list[str]
    """A note on the files that a rule denies."""
    result: SearchResult
    unsearched: Unsearched

    @property
    def is_complete(self) -> bool:
        """True if every file was listed and searched, up to the limit."""
        return self.listing.complete and self.result.complete


class GrepTool(WorkspaceTool[GrepArguments]):
    """Tool that finds lines by a regular expression."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace, "grep", _DESCRIPTION, GrepArguments, read_only=True)

    def call_accesses(self, args: GrepArguments) -> Accesses:
        return Accesses(searches=frozenset({self._workspace.resolve(args.path)}))

    def call_subject(self, args: GrepArguments) -> Subject:
        return PathSubject(self._workspace.given(args.path), "search", leaves_out_denied=True)

    def call_summary(self, args: GrepArguments) -> str:
        where = "" if args.path == "." else f" in {args.path}"
        return f"{args.pattern}{where}{f' ({args.glob})' if args.glob else ''}"

    async def run(self, args: GrepArguments, context: ToolContext) -> ToolResult:
        with os_errors_as(f"cannot search {args.path}"):
            found = await self._search(args, context)
            lines = await asyncio.to_thread(self._lines, args, found, context.cancellation)
        hits = found.result.hits
        files, matches = len(hits), sum(len(hit.columns) or hit.count for hit in hits)
        details: JsonObject = {
            "outcome": _outcome(args, files, matches),
            "files": files,
            "matches": matches,
            "complete": found.is_complete and not found.result.more,
        }
        return ToolResult.of_text("\n".join([*lines, *_notes(args, found)]), details=details)

    async def _search(self, args: GrepArguments, context: ToolContext) -> _Found:
        glob = args.glob.removeprefix("!")
        is_exclusion, wanted = glob != args.glob, GlobPattern.parse_filter(glob) if glob else None
        place, cancellation = self._workspace.place(args.path, context.targets), context.cancellation
        start = place.path
        if not os.path.lexists(start):
            raise missing_file_error(start, self._workspace.display(start))
        ripgrep = find_ripgrep(self._workspace.root)
        is_denied = context.is_denied
        is_directory = os.path.isdir(start)
        if is_directory:
            if wanted is None or is_exclusion:
                listing = await list_files(place, self._workspace.root, ripgrep, cancellation)
            else:
                listing = await list_matching(place, self._workspace.root, ripgrep, wanted, cancellation, regular=True)
        else:
            # Opened only to refuse a pipe or a device by its name: the engines would say nothing.
            async with open_file(start, self._workspace.display(start), place=place):
                pass
            place, listing = ResolvedPath(start.parent, place.known), FileListing((start.name,), True)
            is_denied = _never  # The policy allowed this very file.
            if wanted is not None and not is_exclusion and not wanted.matches(start.name):
                listing = FileListing((), True)
        names = await asyncio.to_thread(_filtered, listing.names, wanted if is_exclusion else None)
        names, denied = await asyncio.to_thread(without_denied, names, is_denied)
        request = SearchRequest(args.pattern, args.output_mode, args.ignore_case, args.limit)
        result = await search_contents(place, names, request, ripgrep, cancellation)
        unsearched = large = result.large
        if result.has_errors or not result.hits:
            searched = await asyncio.to_thread(_without, names, {*large.binary, *large.too_long})
            # A pattern in ASCII finds its matches in most other encodings as well.
            beyond_ascii = not args.pattern.isascii()
            found = await asyncio.to_thread(
                find_unsearched, place, searched, cancellation.is_set, beyond_ascii=beyond_ascii
            )
            unsearched = replace(found, binary=[*large.binary, *found.binary], too_long=large.too_long)
        if result.hits:
            # What a search always leaves out is worth a line only if it found nothing.
            unreadable, too_long = unsearched.unreadable, unsearched.too_long
            unsearched = Unsearched(binary=large.binary, unreadable=unreadable, too_long=too_long)
        elif is_directory:
            known = listing if wanted is None or is_exclusion else None
            ignored = await self._ignored(place, ripgrep, wanted, cancellation, known)
            unsearched.ignored, _ = await asyncio.to_thread(without_denied, ignored, is_denied)
        return _Found(place, listing, denied, result, unsearched)

    async def _ignored(
        self,
        place: ResolvedPath,
        ripgrep: Ripgrep | None,
        wanted: GlobPattern | None,
        cancellation: CancellationToken,
        listing: FileListing | None,
    ) -> Sequence[str]:
        """Return the files that `.gitignore` excludes, by the listing of all others; None: `wanted` selects files."""
        root = self._workspace.root
        if listing is None and wanted is not None:
            return await list_matching_ignored(place, root, ripgrep, wanted, cancellation)
        ignored = await list_ignored(place, root, ripgrep, cancellation, listing)
        return await asyncio.to_thread(_filtered, ignored, wanted)

    def _lines(self, args: GrepArguments, found: _Found, cancellation: CancellationToken) -> list[str]:
        """Return the lines of the result."""
        if args.output_mode == "content":
            return matching_lines(found.place, found.result.hits, args.context, self._workspace, cancellation.is_set)
        shown = [(self._workspace.display(found.place.path / hit.name), hit.count) for hit in found.result.hits]
        return [f"{name}:{count}" if args.output_mode == "count" else name for name, count in shown]


def _filtered(names: Sequence[str], without: GlobPattern | None) -> list[str]:
    """Return the names of files that a pattern does not exclude."""
    return [name for name in names if without is None or not without.matches(name)]


def _without(names: Sequence[str], left_out: set[str]) -> Sequence[str]:
    return [name for name in names if name not in left_out] if left_out else names


def _never(name: str) -> bool:
    return False


def _outcome(args: GrepArguments, files: int, matches: int) -> str:
    if not files:
        return "no matches"
    found = counted(files, "file")
    return found if args.output_mode == "files_with_matches" else f"{counted(matches, 'match', 'matches')} in {found}"


def _notes(args: GrepArguments, found: _Found) -> list[str]:
    """Return notes on what the result leaves out."""
    notes = list(found.denied)
    if not found.result.hits:
        one_line = "; a match cannot span lines" if "\n" in args.pattern or "\\n" in args.pattern else ""
        left_out = found.unsearched.words()
        unsearched = f"; not searched: {left_out}" if left_out else ""
        notes.append(f"[nothing matches {printable(args.pattern)}{one_line}{unsearched}]")
        notes += [UNREADABLE_NOTE] if found.listing.has_errors else []
    elif left_out := found.unsearched.words():
        notes.append(f"[not searched: {left_out}]")
    if found.result.more:
        notes.append(f"[stopped at the limit of {args.limit:,}; narrow the search or raise `limit` to see more]")
    if not found.is_complete:
        notes.append("[the search is incomplete because it took too long; search a smaller directory]")
    return notes


# --- matching lines ---------------------------------------------------------------------------------------------------


def matching_lines(
    place: ResolvedPath, hits: Sequence[FileHits], context: int, workspace: Workspace, stopped: Callable[[], bool]
) -> list[str]:
    """Return the lines of all matches as `path:number:text`, context lines as `path-number-text`. Blocks.

    `--` separates groups of lines.
    """
    shown: list[str] = []
    room = SHOWN_CHARACTERS
    for number, hit in enumerate(hits):
        if context and number:
            shown.append("--")
        for line in _lines_of(place, hit, context, workspace, stopped):
            room -= len(line) + 1
            if room < 0:
                shown.append(f"[cut after {SHOWN_CHARACTERS:,} characters; narrow the search to see the rest]")
                return shown
            shown.append(line)
    return shown


def _lines_of(
    place: ResolvedPath, hit: FileHits, context: int, workspace: Workspace, stopped: Callable[[], bool]
) -> Iterator[str]:
    """Yield the lines of one file."""
    path = place.path / hit.name
    name = workspace.display(path)
    ranges = _ranges(sorted(hit.columns), context)
    # Kept wider than it is shown: the part around a match may be far inside of a line.
    request = LineRequest(ranges, _KEPT_WIDTH, budget=SHOWN_CHARACTERS * 50)
    try:
        with open_regular_file(path, name, place=place) as (descriptor, status):
            page = read_lines_blocking(descriptor, status, request, stopped)
    except (OSError, ToolError) as error:
        yield f"[{name} has matches, but could not be read: {error}]"
        return
    before = 0
    for line in page.lines:
        if context and before and line.number > before + 1:
            yield "--"
        before = line.number
        column = hit.columns.get(line.number)
        sign = "-" if column is None else ":"
        yield f"{name}{sign}{line.number}{sign}{_shortened(line, column or 1)}"


def _ranges(numbers: Sequence[int], context: int) -> list[tuple[int, int]]:
    """Return the first and last line of each group; matches whose contexts touch form one group."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        first, last = max(1, number - context), number + context
        if ranges and first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], last)
        else:
            ranges.append((first, last))
    return ranges


def _shortened(line: Line, column: int) -> str:
    """Return the text of a line; of a long one the part around the match, which begins at byte `column`."""
    text = line.text
    if len(text) + line.left_out <= SHOWN_WIDTH:
        return printable(text)
    # Engines count bytes, lines have characters.
    match = len(text.encode("utf-8", "surrogateescape")[: column - 1].decode("utf-8", "surrogateescape"))
    start = max(0, min(match - _BEFORE_MATCH, len(text) - SHOWN_WIDTH))
    left = len(text) + line.left_out - start - SHOWN_WIDTH
    before = f"[{start:,} characters …] " if start else ""
    after = f" [… {left:,} characters]" if left > 0 else ""
    return f"{before}{printable(text[start : start + SHOWN_WIDTH])}{after}"
