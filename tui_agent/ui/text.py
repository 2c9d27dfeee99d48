"""The one border text from outside crosses to reach the screen (safety promise 17).

Nothing of it acts: control sequences are dropped, and what hides or reorders characters is shown as a visible escape.
`sanitise` is for reading, `visible` for deciding: there, two different texts never look the same.
"""

import re
import unicodedata
from functools import lru_cache

from rich.cells import cell_len

TAB = 4
"""Width of a tab stop in cells."""
ELLIPSIS = "…"
MOST_MARKS = 4
"""Combining marks shown on one character; more would only hide what is around."""
LONG_BLANK = 40
"""A run of as many blanks is counted rather than shown where two texts may not look the same."""
TAB_SIGN = "⇥"
"""Shows a tab where two texts may not look the same; a literal one is escaped there."""


def sanitise(text: str) -> str:
    """Text that is safe to show and reads as it was meant.

    Line by line: `sanitise(a + "\\n" + b)` is `sanitise(a) + "\\n" + sanitise(b)` unless a line feed follows a carriage
    return, so that text which streams in can be cleaned as its lines complete. Control sequences go, ended or not (an
    unended one takes its line); a lone carriage return begins a line, tabs become blanks, format, private, unassigned
    and zero-width characters become escapes such as `\\u202e`. Emoji joiners and presentation marks go without a
    trace, the no-break blanks and the wide blank of ordinary typography become blanks.
    """
    if _NOT_PLAIN.search(text) is None:
        return text
    if _CONTROL.search(text) is not None:
        text = _drop_controls(text)
    if not text.isascii():
        text = _show_unseen(text)
    return text.expandtabs(TAB) if "\t" in text else text


def visible(text: str) -> str:
    """Text in which everything can be seen; different texts give different ones (safety promise 17).

    Only line feeds stay as they are, but for those at the end, which are `\\n`. Other control, format and unusual
    characters are escapes such as `\\x1b` or `\\u202e`; trailing blanks are `\\x20`, several of them or many in a row
    `\\x20{80}`; a tab is `⇥` and three blanks. A backslash is doubled where it could be taken for one of these. Letters
    that pass for ASCII ones in a word of ASCII letters are escaped, too.
    """
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    hidden: frozenset[str] = frozenset() if body.isascii() else _deceiving(body)

    def show(match: re.Match[str]) -> str:
        found = match[0]
        match match.lastgroup:
            case "backslashes":
                at_end = match.end() == len(body)
                return found * 2 if (ends if at_end else _escape_follows(body, match.end(), hidden)) else found
            case "tab":
                return TAB_SIGN + " " * 3
            case "blanks":
                return "\\x20" if len(found) == 1 else f"\\x20{{{len(found)}}}"
            case _:
                return _escape(found) if _is_unseen(found) or found in hidden else found

    last = "" if not ends else "\\n" if ends == 1 else f"\\n{{{ends}}}"
    return _SHOWN.sub(show, body) + last


def one_line(text: str, width: int) -> str:
    """Text as one row of at most `width` cells: sanitised, blanks and line ends as one blank, cut with `…`."""
    head = text[: max(0, width) * 8 + 256]
    shown = " ".join(sanitise(head).split())
    if len(head) < len(text):
        shown += ELLIPSIS
    return clip(shown, width)


def ends_of(text: str, most: int) -> str:
    """A text of at most `most` characters as it is; of a longer one both ends, and between them how much is missing."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} more characters …\n{text[-half:]}"


def clip(text: str, width: int) -> str:
    """As much of a sanitised text as fits `width` cells, with `…` in the last one where something is missing."""
    if text.isascii():
        if len(text) <= width:
            return text
    elif cell_len(text[: 2 * max(0, width) + MOST_MARKS]) <= width and cell_len(text) <= width:
        return text
    if width < 1:
        return ""
    return text[: cut_at(text, width - 1)].rstrip() + ELLIPSIS


def cut_at(text: str, width: int) -> int:
    """How many characters of a sanitised text fit in `width` cells; marks stay with their character."""
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
    """The cells that one character takes."""
    return cell_len(character)


def settle(text: str) -> str:
    """Output in which each line is as its last carriage return left it, as a terminal shows progress."""
    if "\r" not in text:
        return text
    return "\n".join(_last_state(line) for line in text.split("\n"))


def foreign_scripts(text: str) -> tuple[str, ...]:
    """The scripts of the letters of a text that are not Latin, by their names, such as `Cyrillic`."""
    if text.isascii():
        return ()
    letters = {character for character in set(text) if not character.isascii() and character.isalpha()}
    return tuple(sorted({script.capitalize() for letter in letters if (script := _script(letter)) != "LATIN"}))


_NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c\n\r]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]?"  # CSI
    r"|\x1b[\x20-\x2f]*[\x30-\x7e]?"
)
_LINE_END = re.compile(r"[\x0b\x0c\x85]")
_EMOJI_JOINER = re.compile(
    "(?<=[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f])\u200d(?=[\u2190-\u2bff\U0001f000-\U0001faff])"
)
_PRESENTATION = re.compile("[\ufe0e\ufe0f]")
_TYPOGRAPHY = {"\u00a0": " ", "\u202f": " ", "\u3000": "  ", "\u2800": " "}
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_LOOK_ALIKES = frozenset("\u037e\u00b4\u02cb\u02d0\u01c0\u2010\u2011\u2024\u2044\u2215\u2223\u2212\u2236\u223c\ua789")
"""Signs that pass for `;`, `'`, `` ` ``, `:`, `|`, `-`, `.`, `/`, `~`."""
_BLANKS = rf"\ ++(?=\n|\Z)|\ {{{LONG_BLANK},}}+"
_SHOWN = re.compile(rf"(?P<backslashes>\\+)|(?P<tab>\t)|(?P<blanks>{_BLANKS})|(?P<odd>[^\n\x20-\x7e])")
_LIKE_AN_ESCAPE = re.compile(rf"x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|n(?:\{{[0-9]+\}})?\Z|{_BLANKS}")
_WORD = re.compile(r"\w+")


def _drop_controls(text: str) -> str:
    """Without sequences and control characters but line feeds and tabs."""
    text = _SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROL.sub("", _LINE_END.sub("\n", text))


def _show_unseen(text: str) -> str:
    """With everything that cannot be seen as an escape."""
    if "\u200d" in text:
        text = _EMOJI_JOINER.sub("", text)
    if "\ufe0f" in text or "\ufe0e" in text:
        text = _PRESENTATION.sub("", text)
    characters = {character for character in set(text) if not character.isascii()}
    table = {ord(character): _shown_as(character) for character in characters if _is_unseen(character)}
    if table:
        text = text.translate(table)
    marks = [character for character in characters if unicodedata.category(character) in ("Mn", "Me")]
    if marks:
        text = re.sub(f"([{''.join(marks)}]{{{MOST_MARKS}}})[{''.join(marks)}]+", r"\1", text)
    return text


def _shown_as(character: str) -> str:
    return _TYPOGRAPHY.get(character) or _escape(character)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@lru_cache(maxsize=4096)
def _is_unseen(character: str) -> bool:
    """Whether a character hides: control, format, private, unassigned, blank or filling."""
    if character == TAB_SIGN:
        return False
    category = unicodedata.category(character)
    if category in _HIDING or (category == "Zs" and character != " "):
        return True
    return character in _FILLERS or _selects_a_variant(ord(character))


def _selects_a_variant(code: int) -> bool:
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


def _deceiving(text: str) -> frozenset[str]:
    """The characters of a text that pass for others in it."""
    found = {character for character in set(text) if character in _LOOK_ALIKES or character == TAB_SIGN}
    if not unicodedata.is_normalized("NFC", text):
        found |= {character for character in set(text) if _composes(character)}
    for word in _WORD.findall(text):
        if not word.isascii() and any(letter.isascii() and letter.isalpha() for letter in word):
            found |= {letter for letter in word if not letter.isascii() and _script(letter) != "LATIN"}
    return frozenset(found)


def _composes(character: str) -> bool:
    """Whether a character is one of several spellings of the same sign."""
    mark = unicodedata.category(character).startswith("M")
    return not character.isascii() and (mark or not unicodedata.is_normalized("NFC", character))


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The first word of a letter's name, which is its script for all that matter here."""
    return unicodedata.name(letter, "UNKNOWN").split()[0]


def _escape_follows(body: str, end: int, hidden: frozenset[str]) -> bool:
    """Whether what follows a run of backslashes is shown as an escape, or reads like one."""
    following = body[end]
    if following not in "\t\n" and not " " <= following <= "~":
        return _is_unseen(following) or following in hidden
    return _LIKE_AN_ESCAPE.match(body, end) is not None


def _last_state(line: str) -> str:
    """What a terminal shows of a line with carriage returns: what was written last."""
    states = line.rstrip("\r").split("\r")
    return states[-1] if states else line
