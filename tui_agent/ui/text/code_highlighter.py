"""Syntax highlighting of code in pieces: streaming code is never highlighted as a whole again.

A piece ends where a top-level line follows a blank one, after a number of lines, and is highlighted by itself. The
pieces depend on the code alone, so the same code looks the same, however it was streamed.
"""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING

from .line import Run

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MIN_PIECE_LINES = 16
"""Lines of a piece before it may end at a good place."""
MAX_PIECE_LINES = 80
"""Lines at which a piece ends anywhere."""
PIECE_SIZE = 4_000
"""Characters at which a piece ends anywhere."""
LONGEST_LINE = 400
"""Most characters of a line in a highlighted piece: some lexers need time quadratic in the length of a line."""
MAX_TOKENS = 2_000
"""Highlighted tokens of a piece; the rest of it is plain."""
_WILD = frozenset("*?[")


def colour_lines(language: str, lines: Sequence[str]) -> list[tuple[Run, ...]]:
    """Return the runs of each line of code; plain if the language is unknown.

    Args:
        language: the info string of a fence; its first word counts.
        lines: sanitised lines.
    """
    match = re.match(r"[\w+#.-]+", language.strip("{}. "))
    name = match[0].lower() if match else ""
    coloured: list[tuple[Run, ...]] = []
    while len(coloured) < len(lines):
        rest = lines[len(coloured) : len(coloured) + MAX_PIECE_LINES + 1]
        piece = rest[: piece_length(rest) or len(rest)]
        coloured.extend(_colour_piece(name, tuple(piece)))
    return coloured


@lru_cache(maxsize=256)
def language_of(file_name: str) -> str:
    """Return the language of a file by its name, for `colour_lines`; empty if it is unknown."""
    # Not `find_lexer_class_for_filename`: it compiles 929 patterns and reads the metadata of all packages.
    from pygments.lexers import find_lexer_class, get_all_lexers

    name = os.path.basename(file_name)
    known = ((lexer, pattern) for lexer, _, patterns, _ in get_all_lexers(plugins=False) for pattern in patterns)
    found = [(find_lexer_class(lexer), pattern) for lexer, pattern in known if _matches(name, pattern)]
    rated = [(one.priority + ("*" not in pattern) / 2, one.__name__, one) for one, pattern in found if one is not None]
    aliases = max(rated, key=itemgetter(0, 1))[2].aliases if rated else ()
    return aliases[0] if aliases else ""


def _matches(name: str, pattern: str) -> bool:
    end = pattern.removeprefix("*")
    if not _WILD.isdisjoint(end):
        return fnmatchcase(name, pattern)
    return name == end or (end != pattern and name.endswith(end))


def piece_length(lines: Sequence[str]) -> int | None:
    """Return the number of lines of the first piece; None while it may still grow."""
    size = 0
    for number, line in enumerate(lines[:MAX_PIECE_LINES]):
        if size >= PIECE_SIZE:
            return number
        size += len(line) + 1
        # A closing bracket belongs to the code above it.
        begins = line[:1].strip() and line[0] not in ")]}"
        if number >= MIN_PIECE_LINES and begins and not lines[number - 1].strip():
            return number
    return MAX_PIECE_LINES if len(lines) >= MAX_PIECE_LINES else None


_STYLES: dict[tuple[str, ...], str] = {
    ("Comment",): "code-comment",
    ("Generic", "Deleted"): "removed",
    ("Generic", "Inserted"): "added",
    ("Generic", "Heading"): "code-name",
    ("Generic", "Subheading"): "code-comment",
    ("Generic", "Emph"): "emphasis",
    ("Generic", "Strong"): "strong",
    ("Keyword",): "code-keyword",
    ("Keyword", "Constant"): "code-number",
    ("Keyword", "Type"): "code-type",
    ("Literal", "Number"): "code-number",
    ("Literal", "String"): "code-string",
    ("Name", "Attribute"): "code-name",
    ("Name", "Builtin"): "code-type",
    ("Name", "Class"): "code-type",
    ("Name", "Decorator"): "code-name",
    ("Name", "Exception"): "code-type",
    ("Name", "Function"): "code-name",
    ("Name", "Tag"): "code-keyword",
    ("Operator", "Word"): "code-keyword",
}
"""Styles of token types; a missing type has the style of its parent."""


# Each layout for another width asks for the same pieces again.
@lru_cache(maxsize=256)
def _colour_piece(language: str, lines: tuple[str, ...]) -> tuple[tuple[Run, ...], ...]:
    """Return the runs of each line of one piece."""
    plain = tuple(((line, ""),) if line else () for line in lines)
    lexer = _lexer(language)
    code = "\n".join(lines)
    if lexer is None or any(len(line) > LONGEST_LINE for line in lines) or _ONLY_WORDS.search(code) is not None:
        return plain
    coloured: list[list[Run]] = [[]]
    # Some lexers, such as that of diffs, know a line by its end.
    for number, (token, text) in enumerate(lexer.get_tokens(code + "\n")):
        if number == MAX_TOKENS:
            return tuple(_pad_uncoloured(coloured, lines))
        style = _style_of(token)
        first, *others = text.split("\n")
        if first:
            _append(coloured[-1], first, style)
        coloured.extend([(other, style)] if other else [] for other in others)
    # A lexer may change what it reads; code is shown exactly.
    faithful = len(coloured) >= len(lines) and all(
        "".join(text for text, _ in runs) == line for runs, line in zip(coloured, lines, strict=False)
    )
    return tuple(tuple(runs) for runs in coloured[: len(lines)]) if faithful else plain


_ONLY_WORDS = re.compile(r"(?:[\w.$<>\[\]?]++\s++){80}")
"""Pattern of text without any punctuation: it is not code, and some lexers need time quadratic in its words."""


def _pad_uncoloured(coloured: Sequence[Sequence[Run]], lines: Sequence[str]) -> Iterator[tuple[Run, ...]]:
    """Yield the lines that are highlighted to their end, and the others plain."""
    for number, line in enumerate(lines):
        runs = tuple(coloured[number]) if number < len(coloured) - 1 else ()
        yield runs if "".join(text for text, _ in runs) == line else ((line, ""),)


def _append(runs: list[Run], text: str, style: str) -> None:
    """Append text to a line; blanks and text of the same style extend the last run, so that rows have few runs."""
    if runs and (runs[-1][1] == style or not text.strip()):
        runs[-1] = (runs[-1][0] + text, runs[-1][1])
    else:
        runs.append((text, style))


@lru_cache(maxsize=512)
def _style_of(kind: tuple[str, ...]) -> str:
    """Return the style of a token type."""
    while kind:
        if (style := _STYLES.get(kind)) is not None:
            return style
        kind = tuple(kind[:-1])
    return ""


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    """Return the lexer of a language; None if there is none."""
    # Imported with the first code, so that an empty screen does not wait for it.
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    if not language:
        return None
    try:
        return find_lexer_class_by_name(language)(stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
