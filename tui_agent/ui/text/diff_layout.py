"""Diffs as rows: in one column, or with both sides beside each other if there is room."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from .diff_parser import DiffLine
from .line import NARROWEST, Line, Run
from .sanitiser import WRAP_SIGN
from .styled_lines import folded, styled_over, width_of_runs, wrapped

SPLIT_WIDTH = 110
"""Least cells for both sides beside each other."""

_SIGNS = {"same": " ", "added": "+", "removed": "-"}


def layout_diff(lines: Sequence[DiffLine], width: int, *, split: bool | None = None) -> list[Line]:
    """Return the rows of a diff, each at most `width` cells wide, and in a very narrow window about `NARROWEST`.

    Args:
        lines: the diff.
        width: cells of a row.
        split: True to show the sides beside each other; None: if there is room.
    """
    several = sum(line.kind == "file" for line in lines) > 1
    beside = split if split is not None else width >= SPLIT_WIDTH and any(line.kind == "removed" for line in lines)
    shown = [(line.old, line.new) if beside else (line.new or line.old,) for line in lines]
    digits = max((len(str(number or 0)) for numbers in shown for number in numbers), default=1)
    rows: list[Line] = []
    for part in _parts(lines):
        first = part[0]
        if first.kind == "file":
            rows.extend([*([Line()] if rows else []), Line(((first.text, "strong"),))] if several else [])
        elif first.kind == "hunk":
            rows.extend(_hunk_rows(first, digits, width) if rows or first.text else [])
        elif first.kind == "note":
            rows.extend(wrapped([(first.text, "muted")], width))
        elif beside:
            rows.extend(_rows_beside(part, digits, width))
        else:
            rows.extend(row for line in part for row in _line_rows(line, digits, width))
    return rows


def _parts(lines: Sequence[DiffLine]) -> Iterator[list[DiffLine]]:
    """Yield single headers and notes, runs of unchanged lines, and runs of removed and then added lines."""
    part: list[DiffLine] = []
    for line in lines:
        alone = line.kind in ("file", "hunk", "note")
        begins = line.kind != "added" or part[-1:] == [] or part[-1].kind == "same"
        if part and (alone or (begins and line.kind != part[-1].kind)):
            yield part
            part = []
        if alone:
            yield [line]
        else:
            part.append(line)
    if part:
        yield part


def _hunk_rows(line: DiffLine, digits: int, width: int) -> list[Line]:
    return wrapped([(" " * max(0, digits - 1) + "⋯ ", "line-number"), (line.text, "muted")], width)


def _line_rows(line: DiffLine, digits: int, width: int, number: int | None = None) -> list[Line]:
    """Return the rows of one line, after its number and sign."""
    kind = "" if line.kind == "same" else line.kind
    number = number or line.new or line.old
    head: Run = (f"{number:>{digits}} ", f"line-number {kind}".strip())
    sign: Run = (f"{_SIGNS[line.kind]} ", kind)
    if width < digits + 3 + NARROWEST:
        head = ("", "")
    runs: Sequence[Run] = ((line.text, kind),)
    for start, end in line.changes:
        runs = styled_over(runs, start, end, f"{kind}-word")
    margin = width_of_runs((head, sign))
    rows: list[Line] = []
    for index, row in enumerate(folded(runs, width - margin)):
        # Without a sign, the rest of a wrapped line would look like an unchanged line.
        prefix = (head, sign) if index == 0 else ((f"{WRAP_SIGN} ".rjust(margin), kind),)
        rows.append(Line((*(run for run in prefix if run[0]), *row.runs), row.joint, margin, kind))
    return rows


def _rows_beside(part: Sequence[DiffLine], digits: int, width: int) -> list[Line]:
    """Return rows with the removed lines on the left and the added ones on the right."""
    half = (width - 3) // 2
    if part[0].kind == "same":
        pairs = [(line, line) for line in part]
    else:
        removed = [line for line in part if line.kind == "removed"]
        added = [line for line in part if line.kind == "added"]
        pairs = list(zip_longest(removed, added))
    rows: list[Line] = []
    for before, after in pairs:
        left = _line_rows(before, digits, half, before.old) if before else []
        right = _line_rows(after, digits, half, after.new) if after else []
        for one, other in zip_longest(left, right):
            runs = (*_filled(one, half), (" │ ", "rule"), *_filled(other, half))
            rows.append(Line(runs, fill=other.fill if other else ""))
    return rows


def _filled(row: Line | None, width: int) -> tuple[Run, ...]:
    """Return a row's runs, padded to `width` cells."""
    if row is None:
        return ((" " * width, ""),)
    missing = width - width_of_runs(row.runs)
    return (*row.runs, (" " * missing, row.fill)) if missing > 0 else row.runs
