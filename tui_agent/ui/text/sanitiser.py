"""The one way for outside text to the screen (safety promise 17).

No outside text controls the terminal: control sequences are dropped, and characters that hide or reorder others become
visible escapes. `sanitise` is for reading, `visible` for decisions: there, two different texts never look the same.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from rich.cells import cell_len

from tui_agent.protocol.visible_text import (
    EMOJI_PARTS,
    SEQUENCE,
    SILENT,
    TYPOGRAPHY,
    WRITING,
    escape_of,
    escapes_in,
    is_invisible,
    split_sequences,
)

TAB = 4
"""Width of a tab stop in cells."""
ELLIPSIS = "…"
MAX_MARKS = 4
"""Most combining marks shown on one character; more would only cover its neighbours."""
LONG_BLANK = 40
"""Length of a run of blanks that `visible` counts rather than shows."""
TAB_SIGN = "⇥"
"""Sign of a tab in `visible`, which escapes a literal one."""
LINE_BREAK = " ⏎ "
"""Stands for a line break in one row, as in the summaries of the tools."""
WRAP_SIGN = "↪"
"""Sign of a row that continues the line above, in visible text; a literal one is escaped, too."""


def sanitise(text: str) -> str:
    """Return text that is safe to show and reads as intended.

    Works line by line: `sanitise(a + "\\n" + b)` is `sanitise(a) + "\\n" + sanitise(b)` unless a line feed follows a
    carriage return, so that streamed text can be cleaned as its lines complete. Control sequences are dropped, ended or
    not (an unended one takes its line with it); a lone carriage return begins a line, tabs become blanks, format,
    private and unassigned characters become escapes such as `\\u202e`. Emoji joiners, presentation marks and skin tones
    are dropped, and flags become letters; the blanks of ordinary typography become blanks. Marks of ordinary writing
    that take no cell are dropped.
    """
    return without_silent(sanitise_for_copies(text))


def sanitise_for_copies(text: str) -> str:
    """Return text as `sanitise` does, with the marks that take no cell: a `LineView` copies them, but draws none."""
    if _NOT_PLAIN.search(text) is None:
        return text
    text = _with_tabs(text)
    return text.expandtabs(TAB) if "\t" in text else text


def without_silent(text: str) -> str:
    """Return text without the marks that take no cell."""
    return text if text.isascii() else text.translate(_NO_SILENT)


def clean_pieces(pieces: Sequence[str]) -> list[str]:
    """Return the pieces of a line so that together they are the sanitised line.

    A piece has exactly the characters that its text becomes, except where characters of two pieces belong together:
    then a piece may have some of its neighbour's.
    """
    cleaned: list[str] = []
    column = 0
    for piece in pieces:
        text = piece if _NOT_PLAIN.search(piece) is None else without_silent(_with_tabs(piece))
        if "\t" in text:
            text = f"{' ' * (column % TAB)}{text}".expandtabs(TAB)[column % TAB :]
        column = len(text) - text.rfind("\n") - 1 if "\n" in text else column + len(text)
        cleaned.append(text)
    whole = "".join(pieces)
    # Characters that belong together, such as emoji sequences, may have a colour change between them.
    if whole.isascii() or (shown := sanitise(whole)) == "".join(cleaned):
        return cleaned
    ends = [0, *(min(end, len(shown)) for end in accumulate(map(len, cleaned)))]
    ends[-1] = len(shown)
    return [shown[start:end] for start, end in pairwise(ends)]


def without_controls(text: str) -> str:
    """Return text for the clipboard: exact, but without control sequences and control characters other than tabs."""
    return text if _CONTROL.search(text) is None else _drop_controls(text)


def with_controls(text: str) -> str:
    """Return text for `sanitise` with control characters as escapes, so that nothing the user sent is dropped.

    Only carriage returns stay.
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] == "\r" else escape_of(match[0]), text)


def visible_summary(text: str) -> str:
    """Return the summary of a call like `visible`, with counts such as `(+1 −1)` as our tools write them."""
    return _ESCAPED_COUNTS.sub(r"\1−\2", visible(text))


def visible(text: str) -> str:
    """Return text in which every character is visible; different texts give different results (safety promise 17).

    Only line feeds stay unchanged, except for those at the end, which become `\\n`. Other control, format and unusual
    characters are escapes such as `\\x1b` or `\\u202e`, and so are combining marks on nothing, or too many on one
    character; trailing blanks are `\\x20`, several of them or many in a row `\\x20{80}`; a tab is `⇥` and three blanks.
    A backslash is doubled if it could be taken for one of these. Letters that look like ASCII ones in a word of ASCII
    letters are escaped, and so are skin tones and the letters of flags, which terminals join.
    """
    # At the end, line feeds would be rows in which nothing is seen.
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    hidden: frozenset[str] = frozenset() if body.isascii() else _deceiving(body)
    loose: frozenset[int] = frozenset() if body.isascii() else _loose_marks(body, hidden)

    def show(match: re.Match[str]) -> str:
        found = match[0]
        match match.lastgroup:
            case "backslashes":
                at_end = match.end() == len(body)
                return found * 2 if (ends if at_end else _escape_follows(body, match.end(), hidden, loose)) else found
            case "tab":
                return TAB_SIGN + " " * 3
            case "blanks":
                return "\\x20" if len(found) == 1 else f"\\x20{{{len(found)}}}"
            case _:
                hides = found in hidden or match.start() in loose or is_invisible(found)
                return escape_of(found) if hides else found

    last = "" if not ends else "\\n" if ends == 1 else f"\\n{{{ends}}}"
    pattern = _SHOWN if len(body) < _MUCH or body.isascii() else _shown_in(body, hidden)
    return pattern.sub(show, body) + last


def with_escapes(text: str, escape: Callable[[str], str] = escape_of) -> str:
    """Return text for an editor, with an escape for each invisible character.

    Unlike in text for reading, nothing is dropped: joiners and control sequences are escapes, and so are combining
    marks beyond the allowed number on one character. Line feeds, tabs and the blanks of typography stay.
    """
    if _NOT_PLAIN.search(text) is None:
        return text
    table = {code: escape(chr(code)) for code in escapes_in(text) if chr(code) not in TYPOGRAPHY}
    if table:
        text = text.translate(table)
    if (marks := _marks_of(text)) is not None:
        text = re.sub(
            f"({marks}{{{MAX_MARKS}}})({marks}+)", lambda match: match[1] + "".join(map(escape, match[2])), text
        )
    return text


def one_line(text: str, width: int) -> str:
    """Return text as one row of at most `width` cells: sanitised, each run of blanks as one blank, cut with `…`."""
    # Only the beginning is sanitised: a result may have megabytes, a row has a few hundred cells.
    head = text[: max(0, width) * 8 + 256]
    shown = " ".join(sanitise(head).split())
    if len(head) < len(text):
        shown += ELLIPSIS
    return clip(shown, width)


def joined_lines(text: str) -> str:
    """Return text of several lines, such as a command, as one line, with `⏎` between those that are not empty."""
    if "\n" not in text:
        return text
    return LINE_BREAK.join(line for line in map(str.strip, text.splitlines()) if line)


def ends_of(text: str, most: int) -> str:
    """Return a text of at most `most` characters unchanged; of a longer one both ends, and the number left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} more characters …\n{text[-half:]}"


def clip(text: str, width: int) -> str:
    """Return as much of a sanitised text as fits `width` cells, with `…` in the last one if something is cut."""
    if text.isascii():
        if len(text) <= width:
            return text
    # The beginning first: to measure all of a long text that will be cut takes long.
    elif cell_len(text[: 2 * max(0, width) + MAX_MARKS]) <= width and cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    return text[: cut_at(text, width - 1)].rstrip() + ELLIPSIS


def cut_at(text: str, width: int) -> int:
    """Return how many characters of a sanitised text fit in `width` cells; marks stay with their character."""
    if text[: width + 1].isascii():
        return min(len(text), max(0, width))
    taken = 0
    for index, character in enumerate(text):
        taken += cells_of(character)
        if taken > width:
            return index
    return len(text)


@lru_cache(maxsize=8192)
def cells_of(character: str) -> int:
    """Return the number of cells of one character."""
    return cell_len(character)


def settle(text: str) -> str:
    """Return output with each line as its last carriage return left it, as a terminal shows progress."""
    if "\r" not in text:
        return text
    return "\n".join(settled_line(line) for line in text.split("\n"))


def settled_line(line: str) -> str:
    """Return what a terminal shows of a line with carriage returns: the characters written last."""
    line = line.rstrip("\r")
    return line[line.rfind("\r") + 1 :]


def foreign_scripts(text: str) -> tuple[str, ...]:
    """Return the names of the non-Latin scripts among the letters of a text, such as `Cyrillic`, sorted."""
    if text.isascii():
        return ()
    letters = {character for character in set(text) if not character.isascii() and character.isalpha()}
    return tuple(sorted({script.capitalize() for letter in letters if (script := _script(letter)) != "LATIN"}))


_NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BLANKS_FOR = TYPOGRAPHY | WRITING
_JOINER = "\u200d"
_NO_SILENT = dict.fromkeys(map(ord, SILENT | {_JOINER}), "")
_LINE_END = re.compile(r"[\x0b\x0c\x85]")
_ESCAPED_COUNTS = re.compile(r"(\+[0-9]+ )\\u2212([0-9])")
_LOOK_ALIKES = frozenset("\u037e\u00b4\u02cb\u02d0\u01c0\u2010\u2011\u2024\u2044\u2215\u2223\u2212\u2236\u223c\ua789")
"""Characters that look like `;`, `'`, `` ` ``, `:`, `|`, `-`, `.`, `/`, `~`."""
_ESCAPED_IN_DECISIONS = _LOOK_ALIKES | EMOJI_PARTS | {TAB_SIGN, WRAP_SIGN}
_MUCH = 4_096
"""Length of a text from which a pattern of its own pays."""
_BLANKS = rf"\ ++(?=\n|\Z)|\ {{{LONG_BLANK},}}+"
_MOSTLY_SHOWN = rf"(?P<backslashes>\\+)|(?P<tab>\t)|(?P<blanks>{_BLANKS})"
_SHOWN = re.compile(rf"{_MOSTLY_SHOWN}|(?P<odd>[^\n\x20-\x7e])")
_LIKE_AN_ESCAPE = re.compile(rf"x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|n(?:\{{[0-9]+\}})?\Z|{_BLANKS}")
_WORD = re.compile(r"\w+")


def _with_tabs(text: str) -> str:
    """Return a sanitised text whose tabs are still there."""
    if _CONTROL.search(text) is not None:
        text = _drop_controls(text)
    return text if text.isascii() else _show_unseen(text)


def _drop_controls(text: str) -> str:
    """Return the text without control sequences and without control characters except line feeds and tabs."""
    text = SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


def _show_unseen(text: str) -> str:
    """Return the text with an escape for every invisible character."""
    text = split_sequences(text)
    characters = {character for character in set(text) if not character.isascii()}
    unseen = {one for one in characters - SILENT - {_JOINER} if is_invisible(one)}
    table = {ord(one): _BLANKS_FOR[one] if one in _BLANKS_FOR else escape_of(one) for one in unseen}
    if table:
        text = text.translate(table)
    if (marks := _marks_of(characters)) is not None:
        text = re.sub(f"({marks}{{{MAX_MARKS}}}){marks}+", r"\1", text)
    return text


def _marks_of(text: Iterable[str]) -> str | None:
    """Return a pattern for the characters of a text that share the cell of the one before; None without any."""
    marks = [one for one in set(text) if not one.isascii() and _is_mark(one) and not is_invisible(one)]
    return f"[{''.join(marks)}]" if marks else None


@lru_cache(maxsize=4096)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character).startswith("M") or cell_len(character) == 0


def _deceiving(text: str) -> frozenset[str]:
    """Return the characters of a text that look like others in it."""
    found = _ESCAPED_IN_DECISIONS.intersection(text)
    # Two encodings of one letter are two names of files.
    if not unicodedata.is_normalized("NFC", text):
        found |= {character for character in set(text) if _composes(character)}
    for word in _WORD.findall(text):
        if not word.isascii() and any(letter.isascii() and letter.isalpha() for letter in word):
            found |= {letter for letter in word if not letter.isascii() and _script(letter) != "LATIN"}
    return frozenset(found)


def _composes(character: str) -> bool:
    """Return True if a character is one of several encodings of the same sign."""
    return not character.isascii() and (_is_mark(character) or not unicodedata.is_normalized("NFC", character))


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """Return the first word of a letter's name, which names its script well enough here."""
    return unicodedata.name(letter, "UNKNOWN").split()[0]


def _shown_in(text: str, hidden: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern for the characters of one text that may become escapes."""
    odd = {one for one in set(text) if not one.isascii() and (one in hidden or is_invisible(one) or _is_mark(one))}
    return re.compile(rf"{_MOSTLY_SHOWN}|(?P<odd>[\x00-\x08\x0b-\x1f\x7f{''.join(odd)}])")


def _loose_marks(text: str, hidden: frozenset[str]) -> frozenset[int]:
    """Return the places of marks that cannot be counted: on nothing visible, or too many on one character."""
    if (marks := _marks_of(text)) is None:
        return frozenset()
    places: set[int] = set()
    for run in re.finditer(f"{marks}+", text):
        base = text[run.start() - 1 : run.start()]
        is_seen = base not in ("", "\n", "\t", " ") and base not in hidden and not is_invisible(base)
        is_plain = is_seen and hidden.isdisjoint(run[0])
        places.update(range(run.start() + (MAX_MARKS if is_plain else 0), run.end()))
    return frozenset(places)


def _escape_follows(body: str, end: int, hidden: frozenset[str], loose: frozenset[int]) -> bool:
    """Return True if the characters after a run of backslashes are an escape, or look like one."""
    following = body[end]
    if end in loose:
        return True
    if following not in "\t\n" and not " " <= following <= "~":
        return is_invisible(following) or following in hidden
    return _LIKE_AN_ESCAPE.match(body, end) is not None


_NAMES = ("path", "file", "directory", "folder", "dir", "notebook")
"""Last words of arguments that are paths, as in `file_path`. Not `command`: a command is shown exactly as it runs."""


def shown_path(path: str, root: str) -> str:
    """Return a path relative to the workspace `root`; unchanged if it is outside or relative, or `root` is empty."""
    root = root.rstrip("/")
    # A link could make a path with `..` mean another file.
    if not root or ".." in path.split("/"):
        return path
    if path.rstrip("/") == root:
        return "."
    below = path.removeprefix(f"{root}/").lstrip("/")
    return path if below == path.lstrip("/") else below


def shown_summary(summary: str, arguments: Mapping[str, object], root: str) -> str:
    """Return the summary of a call, in which the arguments that are paths are spelt as `shown_path` does."""
    for name, value in arguments.items():
        if isinstance(value, str) and value.startswith("/") and name.rpartition("_")[2] in _NAMES:
            # The last occurrence: a search pattern comes before the path.
            before, found, after = summary.rpartition(value)
            summary = f"{before}{shown_path(value, root)}{after}" if found else summary
    return summary
