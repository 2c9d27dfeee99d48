"""Wrapping, cutting and styling of text in rows. Pure. Text in runs is already sanitised."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from textual.content import Content

from .line import NARROWEST, Line, Run
from .sanitiser import cells_of, cut_at

MAX_KEY_ROWS = 2
"""Rows of answers on a page; any further ones are left out."""
_NO_BREAK = "\u00a0"


def plain_line(text: str, style: str = "", *, fill: str = "") -> Line:
    """Return a row of one run."""
    return Line(((text, style),) if text else (), fill=fill)


def text_of_runs(runs: Iterable[Run]) -> str:
    """Return the characters of some runs."""
    return "".join(text for text, _ in runs)


def width_of_runs(runs: Iterable[Run]) -> int:
    """Return the number of cells of some runs."""
    return sum(cell_len(text) for text, _ in runs)


def wrapped(runs: Sequence[Run], width: int) -> list[Line]:
    """Return runs as rows of at most `width` cells, broken between words if possible; line feeds end rows.

    A width below `NARROWEST` counts as `NARROWEST`: rows are then wider than asked for.
    """
    return _rows(runs, max(width, NARROWEST), _word_breaks)


def hard_wrapped(runs: Sequence[Run], width: int, *, whole_words: bool = False) -> list[Line]:
    """Return runs as rows of at most `width` cells, broken anywhere: every blank stays visible; line feeds end rows.

    A width below `NARROWEST` counts as `NARROWEST`, as for `wrapped`.
    With `whole_words` a row ends behind a word or a sign in its last third if there is one, as code is broken by hand.
    """
    width = max(width, NARROWEST)
    # Most lines of a diff are one run that fits, and a diff may have many thousands.
    if len(runs) == 1 and 0 < len(text := runs[0][0]) <= width and text.isascii() and "\n" not in text:
        return [Line((runs[0],))]
    return _rows(runs, width, _code_breaks if whole_words else _cell_breaks)


def styled_over(runs: Sequence[Run], start: int, end: int, style: str) -> tuple[Run, ...]:
    """Return runs with `style` added from character `start` to before `end`."""
    before, rest = _split(runs, start)
    middle, after = _split(rest, max(0, end - start))
    return (*before, *((text, f"{old} {style}".strip()) for text, old in middle), *after)


def styled_under(runs: Sequence[Run], start: int, beneath: Iterable[Run]) -> tuple[Run, ...]:
    """Return runs with the styles of other runs, which have the same text from character `start` on, beneath theirs."""
    before, rest = _split(runs, start)
    for text, style in beneath:
        taken, rest = _split(rest, len(text))
        before += [(piece, f"{style} {old}".strip()) for piece, old in taken]
    return (*before, *rest)


def runs_between(runs: Sequence[Run], start: int, end: int) -> Sequence[Run]:
    """Return the runs from character `start` to before `end`."""
    return _split(_split(runs, start)[1], end - start)[0]


def clipped(runs: Sequence[Run], width: int) -> tuple[Run, ...]:
    """Return as many runs as fit `width` cells; the last cell is `…` if something is cut."""
    if width_of_runs(runs) <= width:
        return tuple(runs)
    if width < 1:
        return ()
    kept, _ = _split(runs, cut_at(text_of_runs(runs), width - 1))
    return (*kept, ("…", kept[-1][1] if kept else ""))


def prefixed_lines(lines: Iterable[Line], first: Sequence[Run], others: Sequence[Run]) -> list[Line]:
    """Return rows after a margin; the first row's margin may differ and, as the marker of a list, is text."""
    result: list[Line] = []
    for number, line in enumerate(lines):
        result.append(line.prefixed(*others) if number else replace(line, runs=(*first, *line.runs)))
    return result


def copied_text(lines: Sequence[tuple[Line, int, int | None]]) -> str:
    """Return the selected text of rows as it was before wrapping, with a line feed only where the text had one.

    Args:
        lines: each row with its first selected character and the one behind the last; None: to the end of the row.
            The indent of a row is never copied.
    """
    text = ""
    for number, (line, start, end) in enumerate(lines):
        if number:
            text += "\n" if line.joint is None else line.joint
        text += line.plain[max(start, line.indent) : end]
    return text


def key_rows(answers: Iterable[tuple[str, str, bool]], width: int) -> list[Line]:
    """Return answers in as few rows as hold them; no answer is split, and those beyond `MAX_KEY_ROWS` rows are cut.

    Args:
        answers: key, text, and True if the answer counts now; any other is dim.
        width: cells of a row.
    """
    # Rows may end only between answers; the three blanks there stay places to break.
    runs = [(text.replace(" ", _NO_BREAK).replace(_NO_BREAK * 3, " " * 3), style) for text, style in key_runs(answers)]
    rows = wrapped(runs, width)[:MAX_KEY_ROWS]
    return [Line(tuple((text.replace(_NO_BREAK, " "), style) for text, style in row.runs)) for row in rows]


def key_runs(answers: Iterable[tuple[str, str, bool]]) -> list[Run]:
    """Return a row of answers.

    Args:
        answers: key, text, and True if the answer counts now; any other is dim.
    """
    return [run for key, text, counts in answers for run in choice_runs(key, text, "   ", counts=counts)]


def choice_runs(key: str, text: str, gap: str, *, counts: bool, is_at_cursor: bool = False) -> list[Run]:
    """Return one answer with the gap behind it: dim unless it counts now, and marked if enter gives it."""
    style, before = "" if counts else "muted", " " if text else ""
    runs = [(key, "key" if counts else "muted")]
    if is_at_cursor:
        return [*runs, (before, style), (text, "chip"), (gap, style)]
    return [*runs, (before + text + gap, style)]


def key_at(row: Line, column: int) -> str:
    """Return the key whose answer is at a cell of a row of `key_runs`; empty beside answers, and where they are dim."""
    key, label, start = "", "", 0
    for text, style in (*row.runs, ("", "key")):
        if style in ("key", "muted"):
            if key and start <= column < start + cell_len(label.rstrip()):
                return key
            key, start, label = text if style == "key" else "", start + cell_len(label), ""
        label += text
    return ""


def _rows(runs: Sequence[Run], width: int, breaks: "_Breaks") -> list[Line]:
    """Return rows of runs, cut by `breaks`."""
    lines: list[Line] = []
    for paragraph in _paragraphs(runs):
        text, joint = text_of_runs(paragraph), None
        places = breaks.offsets(text, width)
        for taken, place in zip(_cut(paragraph, places), (*places, len(text)), strict=True):
            lines.append(Line(_without_end(taken) if breaks.words else tuple(taken), joint))
            joint = " " if breaks.words and text[place - 1 : place] == " " else ""
    return lines


def _cut(runs: Sequence[Run], places: Sequence[int]) -> Iterator[Sequence[Run]]:
    """Yield runs cut at ascending places, in one pass over all of them."""
    piece: list[Run] = []
    end = 0
    cuts = iter(places)
    cut = next(cuts, None)
    for text, style in runs:
        start, end = end, end + len(text)
        taken = start
        while cut is not None and cut < end:
            if cut > taken:
                piece.append((text[taken - start : cut - start], style))
            yield piece
            piece, taken, cut = [], max(taken, cut), next(cuts, None)
        if taken < end:
            piece.append((text[taken - start :] if taken > start else text, style))
    yield piece


def _paragraphs(runs: Sequence[Run]) -> list[list[Run]]:
    """Return runs cut at line feeds: always at least one paragraph, maybe an empty one."""
    paragraphs: list[list[Run]] = [[]]
    for text, style in runs:
        first, *others = text.split("\n")
        if first:
            paragraphs[-1].append((first, style))
        paragraphs.extend([(other, style)] if other else [] for other in others)
    return paragraphs


def _split(runs: Sequence[Run], place: int) -> tuple[list[Run], list[Run]]:
    """Return the runs before a character and from it on."""
    before: list[Run] = []
    for number, (text, style) in enumerate(runs):
        if place >= len(text):
            before.append((text, style))
            place -= len(text)
            continue
        if place > 0:
            before.append((text[:place], style))
        return before, [(text[max(0, place) :], style), *runs[number + 1 :]]
    return before, []


def _without_end(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return runs without blanks at their end."""
    kept = list(runs)
    while kept and not kept[-1][0].rstrip(" "):
        kept.pop()
    if kept:
        kept[-1] = (kept[-1][0].rstrip(" "), kept[-1][1])
    return tuple(kept)


_WORD = re.compile(r" *[^ ]+ *|  *")


@dataclass(frozen=True, slots=True)
class _Breaks:
    """A way of breaking paragraphs."""

    words: bool
    code: bool = False
    """True to break inside a word only if the last third of the row is one."""

    def offsets(self, text: str, width: int) -> list[int]:
        """Return the characters at which new rows begin, ascending, without 0."""
        if text.isascii():
            if len(text) <= width:
                return []
            if self.code:
                return _code_offsets(text, width)
            if not self.words:
                return list(range(width, len(text), width))
        elif cell_len(text) <= width:
            return []
        return _word_offsets(text, width) if self.words else _cell_offsets(text, width, 0)[0]


_word_breaks = _Breaks(words=True)
_cell_breaks = _Breaks(words=False)
_code_breaks = _Breaks(words=False, code=True)


def _word_offsets(text: str, width: int) -> list[int]:
    """Return breaks before words that do not fit; words wider than a row are broken inside."""
    offsets: list[int] = []
    used = 0
    cells = len if text.isascii() else cell_len
    for match in _WORD.finditer(text):
        word = match[0]
        core = cells(word.rstrip(" "))
        if used + core <= width:
            used += cells(word)
            continue
        if used and match.start():
            offsets.append(match.start())
        used = cells(word)
        if core > width:
            inner, used = _cell_offsets(word.rstrip(" "), width, 0)
            offsets.extend(match.start() + place for place in inner)
            used += len(word) - len(word.rstrip(" "))
    return offsets


def _code_offsets(text: str, width: int) -> list[int]:
    """Return breaks of an ASCII text behind the last sign or blank in the last third of a row, else at its end."""
    offsets: list[int] = []
    start = 0
    while len(text) - start > width:
        end, least = start + width, start + 2 * width // 3
        found = [place for place in range(least, end) if not (text[place].isalnum() or text[place] == "_")]
        start = found[-1] + 1 if found else end
        offsets.append(start)
    return offsets


def _cell_offsets(text: str, width: int, used: int) -> tuple[list[int], int]:
    """Return breaks wherever a row is full, and the cells of the last row."""
    if text.isascii():
        places = list(range(width, len(text), width))
        return places, used + len(text) - (places[-1] if places else 0)
    offsets: list[int] = []
    row = 0
    for place, character in enumerate(text):
        cells = cells_of(character)
        if row + cells > width and row:
            offsets.append(place)
            row = 0
        row += cells
    return offsets, used + row


def joined_parts(parts: Sequence[Content], width: int, start: str = "") -> Content:
    """Return `start` and the parts, joined by dots: the first part and as many more as fit into `width` cells."""
    line = Content(start)
    for number, part in enumerate(parts):
        longer = line + (Content.styled(" · ", "$text-muted") if number else Content("")) + part
        if number and longer.cell_length > width:
            break
        line = longer
    return line
