"""Layout of Markdown blocks as rows. No row is wider than the given width, however narrow that is."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len

from tui_agent.ui.text.code_highlighter import colour_lines
from tui_agent.ui.text.line import NARROWEST, Line, Run
from tui_agent.ui.text.sanitiser import sanitise_for_copies
from tui_agent.ui.text.styled_lines import hard_wrapped, prefixed_lines, text_of_runs, width_of_runs, wrapped

from .markdown_blocks import (
    Align,
    Block,
    CodeBlock,
    Heading,
    Item,
    Paragraph,
    PlainText,
    Quote,
    Runs,
    Table,
    ThematicBreak,
)

MAX_ROWS = 400
"""Most rows shown of a table; others are counted."""
MAX_CODE_LINES = 10_000
"""Most lines shown of a block of code; others are counted."""
_MIN_COLUMN = 5
"""Least cells of a table's column; if not all columns have as many, rows become records."""
_ROOM = 2 * NARROWEST
"""Least cells for text beside a margin; with fewer there is no margin."""


def layout_block(block: Block, width: int) -> list[Line]:
    """Return the rows of a block, each at most `width` cells wide, and at least `NARROWEST`."""
    match block:
        case Paragraph(runs):
            return wrapped(runs, width)
        case Heading(level, runs):
            style = f"heading-{min(level, 3)}"
            return wrapped([(text, f"{style} {inner}".strip()) for text, inner in runs], width)
        case CodeBlock():
            return layout_code(block, width)
        case Quote(blocks):
            return _beside((("▎ ", "quote-bar"),), (("▎ ", "quote-bar"),), blocks, width, "quote")
        case Item(_, blocks):
            marker = f"{block.marker} "
            if width - len(marker) < _ROOM:
                return stacked(_after_marker(marker, blocks), width)
            return _beside(((marker, "marker"),), ((" " * len(marker), ""),), blocks, width, "")
        case Table():
            return _table(block, width)
        case PlainText(text):
            return wrapped([(sanitise_for_copies(text).removesuffix("\n"), "")], width)
        case ThematicBreak():
            return [Line((("─" * max(width, NARROWEST), "rule"),))]


def layout_code(block: CodeBlock, width: int) -> list[Line]:
    """Return the rows of code on its own background, each line broken where the row is full."""
    shown = block.lines[:MAX_CODE_LINES]
    margin = "  " if width >= NARROWEST + 2 else ""
    rows: list[Line] = []
    for runs in colour_lines(block.language, shown):
        ground: list[Run] = [(text, f"code-ground {style}".strip()) for text, style in runs]
        for line in hard_wrapped(ground, width - len(margin)):
            row = Line(line.runs, line.joint, fill="code-ground")
            rows.append(row.prefixed((margin, "code-ground")) if margin else row)
    if len(shown) < len(block.lines):
        rows.append(_left_out(len(block.lines) - len(shown), "lines"))
    return rows


def stacked(blocks: Sequence[Block], width: int) -> list[Line]:
    """Return several blocks below each other, with an empty row between them except between items of one list."""
    rows: list[Line] = []
    before: Block | None = None
    for block in blocks:
        tight = isinstance(block, Item) or (isinstance(before, Paragraph) and isinstance(block, Item))
        if before is not None and not tight:
            rows.append(Line())
        rows.extend(layout_block(block, width))
        before = block
    return rows


def estimated_height(block: Block, width: int) -> int:
    """Return about how many rows a block will take, without laying it out."""
    match block:
        case Paragraph(runs) | Heading(_, runs):
            return sum(1 + len(line) // max(width, NARROWEST) for line in text_of_runs(runs).split("\n"))
        case CodeBlock(_, lines):
            return min(len(lines), MAX_CODE_LINES)
        case Quote(blocks) | Item(_, blocks):
            return sum(estimated_height(inner, width - 2) for inner in blocks) or 1
        case Table(rows):
            return min(len(rows), MAX_ROWS) + 1
        case PlainText(text):
            return max(1, text.count("\n") + len(text) // max(width, NARROWEST))
        case ThematicBreak():
            return 1


def _beside(first: Sequence[Run], others: Sequence[Run], blocks: Sequence[Block], width: int, style: str) -> list[Line]:
    """Return blocks to the right of a margin."""
    margin = width_of_runs(others)
    if width - margin < _ROOM:
        first, others, margin = (), (), 0
    rows = stacked(blocks, width - margin) or [Line()]
    if style:
        rows = [
            Line(tuple((text, f"{style} {inner}".strip()) for text, inner in row.runs), row.joint, row.indent, row.fill)
            for row in rows
        ]
    return prefixed_lines(rows, first, others)


def _after_marker(marker: str, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks of an item with its marker as their first word, if there is no room for a margin."""
    if blocks and isinstance(blocks[0], Paragraph):
        return (Paragraph(((marker, "marker"), *blocks[0].runs)), *blocks[1:])
    return (Paragraph(((marker, "marker"),)), *blocks)


def _table(table: Table, width: int) -> list[Line]:
    """Return a table whose columns share the width, or records if there are too many columns."""
    header, *body = table.rows
    shown = body[:MAX_ROWS]
    columns = _column_widths([header, *shown], width)
    if columns is None:
        rows = _records(header, shown, width)
    else:
        rows = _table_row(tuple(_bold(cell) for cell in header), columns, table.aligns)
        rows.append(Line((("─┼─".join("─" * column for column in columns), "rule"),)))
        for cells in shown:
            rows.extend(_table_row(cells, columns, table.aligns))
    if len(shown) < len(body):
        rows.append(_left_out(len(body) - len(shown), "rows"))
    return rows


def _column_widths(rows: Sequence[Sequence[Runs]], width: int) -> list[int] | None:
    """Return the cells of each column: its need, or its share; None if there is not enough room for all."""
    count = len(rows[0])
    room = width - 3 * (count - 1)
    wanted = [max(1, *(width_of_runs(row[index]) for row in rows if index < len(row))) for index in range(count)]
    if sum(wanted) <= room:
        return wanted
    widths = [min(want, _MIN_COLUMN) for want in wanted]
    spare = room - sum(widths)
    if spare < 0 or room < _ROOM:
        return None
    while spare > 0:
        hungry = [index for index in range(count) if widths[index] < wanted[index]]
        share = max(1, spare // len(hungry))
        for index in hungry[:spare]:
            more = min(share, wanted[index] - widths[index], spare)
            widths[index] += more
            spare -= more
    return widths


def _table_row(cells: Sequence[Runs], columns: Sequence[int], aligns: Sequence[Align]) -> list[Line]:
    """Return one row of a table, as high as its highest cell."""
    columns_of_lines = [_cell_lines(cell, width) for cell, width in zip(cells, columns, strict=False)]
    rows: list[Line] = []
    for parts in zip_longest(*columns_of_lines):
        runs: list[Run] = []
        for index, part in enumerate(parts):
            if index:
                runs.append((" │ ", "rule"))
            runs.extend(_aligned(part.runs if part else (), columns[index], aligns[index]))
        rows.append(Line(tuple(runs)))
    return rows


def _cell_lines(cell: Runs, width: int) -> list[Line]:
    """Return the rows of one cell; unlike text, a cell may be narrower than `NARROWEST`."""
    if width >= NARROWEST:
        return wrapped(cell, width)
    rows: list[Line] = []
    for line in wrapped(cell, NARROWEST):
        taken: list[Run] = []
        used = 0
        for text, style in line.runs:
            for character in text:
                cells = cell_len(character)
                if used + cells > width:
                    rows.append(Line(tuple(taken)))
                    taken, used = [], 0
                taken.append((character if cells <= width else "…", style))
                used += min(cells, width)
        rows.append(Line(tuple(taken)))
    return rows


def _aligned(runs: Runs, width: int, align: Align) -> list[Run]:
    spare = width - width_of_runs(runs)
    left = spare if align == "right" else spare // 2 if align == "center" else 0
    padded: list[Run] = [(" " * left, ""), *runs, (" " * (spare - left), "")]
    return [run for run in padded if run[0]]


def _bold(cell: Runs) -> Runs:
    return tuple((text, f"strong {style}".strip()) for text, style in cell)


def _records(header: Sequence[Runs], body: Sequence[Sequence[Runs]], width: int) -> list[Line]:
    """Return the rows of a table below each other, each cell after the heading of its column."""
    rows: list[Line] = []
    for number, cells in enumerate(body):
        if number:
            rows.append(Line())
        for name, cell in zip(header, cells, strict=False):
            rows.extend(wrapped((*_bold(name), (": ", "muted"), *cell), width))
    return rows or wrapped([run for name in header for run in (*_bold(name), (" ", ""))], width)


def _left_out(count: int, what: str) -> Line:
    return Line(((f"… {count:,} more {what}", "muted"),))
