"""Output of grep: the matching lines and their context, in the same form for every search engine."""

import asyncio
from collections.abc import Callable, Sequence

from tui_agent.protocol.errors import ToolError

from .content_search import FileHits
from .line_pages import PIECE, Line, LinePage, LineRequest, read_lines
from .pinned_directory import ResolvedPath, open_file
from .text_format import SAMPLE_SIZE, format_of, printable
from .workspace import Workspace

SHOWN_WIDTH = 400
"""Most characters shown of a line."""

SHOWN_CHARACTERS = 40_000
"""Most characters of a result; below the limit at which the engine cuts results."""

_KEPT_WIDTH = 20_000
_BEFORE_MATCH = 100


async def matching_lines(
    place: ResolvedPath, hits: Sequence[FileHits], context: int, workspace: Workspace, stopped: Callable[[], bool]
) -> list[str]:
    """Return the lines of all matches as `path:number:text`, context lines as `path-number-text`.

    `--` separates groups of lines.
    """
    shown: list[str] = []
    room = SHOWN_CHARACTERS
    for number, hit in enumerate(hits):
        if context and number:
            shown.append("--")
        name = workspace.display(place.path / hit.name)
        try:
            page = await _page_of(place, hit, name, context, stopped)
        except (OSError, ToolError) as error:
            lines = [f"[{name} has matches, but could not be read: {error}]"]
        else:
            lines = await asyncio.to_thread(_shown_lines, page, hit, name, context, room)
        for line in lines:
            room -= len(line) + 1
            if room < 0:
                shown.append(f"[cut after {SHOWN_CHARACTERS:,} characters; narrow the search to see the rest]")
                return shown
            shown.append(line)
    return shown


async def _page_of(
    place: ResolvedPath, hit: FileHits, name: str, context: int, stopped: Callable[[], bool]
) -> LinePage:
    """Read the matching lines of one file and their context.

    Raises:
        ToolError, OSError: the file could not be read.
    """
    request = LineRequest(_ranges(sorted(hit.columns), context), _KEPT_WIDTH, budget=SHOWN_CHARACTERS * 50)
    async with open_file(place.path / hit.name, name, place=place) as (file, status):
        start = await file.read(PIECE)
        return await read_lines(file, status, format_of(start[:SAMPLE_SIZE]), start, request, stopped)


def _shown_lines(page: LinePage, hit: FileHits, name: str, context: int, room: int) -> list[str]:
    """Return the lines of one file as they are shown, up to the first for which there is no room."""
    shown: list[str] = []
    before = 0
    for line in page.lines:
        if room < 0:
            break
        if context and before and line.number > before + 1:
            shown.append("--")
            room -= len("--") + 1
        before = line.number
        column = hit.columns.get(line.number)
        sign = "-" if column is None else ":"
        shown.append(f"{name}{sign}{line.number}{sign}{_shortened(line, column or 1)}")
        room -= len(shown[-1]) + 1
    return shown


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
    match = len(text.encode("utf-8", "surrogateescape")[: column - 1].decode("utf-8", "surrogateescape"))
    start = max(0, min(match - _BEFORE_MATCH, len(text) - SHOWN_WIDTH))
    left = len(text) + line.left_out - start - SHOWN_WIDTH
    before = f"[{start:,} characters …] " if start else ""
    after = f" [… {left:,} characters]" if left > 0 else ""
    return f"{before}{printable(text[start : start + SHOWN_WIDTH])}{after}"
