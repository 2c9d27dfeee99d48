"""Output of grep: the matching lines and their context, in the same form for every search engine."""

from collections.abc import Callable, Iterator, Sequence

from tui_agent.protocol.errors import ToolError

from .content_search import FileHits
from .line_pages import Line, LineRequest, read_lines_blocking
from .pinned_directory import ResolvedPath, open_regular_file
from .text_format import printable
from .workspace import Workspace

SHOWN_WIDTH = 400
"""Most characters shown of a line."""

SHOWN_CHARACTERS = 40_000
"""Most characters of a result; below the limit at which the engine cuts results."""

_KEPT_WIDTH = 20_000
_BEFORE_MATCH = 100


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
    match = len(text.encode("utf-8", "surrogateescape")[: column - 1].decode("utf-8", "surrogateescape"))
    start = max(0, min(match - _BEFORE_MATCH, len(text) - SHOWN_WIDTH))
    left = len(text) + line.left_out - start - SHOWN_WIDTH
    before = f"[{start:,} characters …] " if start else ""
    after = f" [… {left:,} characters]" if left > 0 else ""
    return f"{before}{printable(text[start : start + SHOWN_WIDTH])}{after}"
