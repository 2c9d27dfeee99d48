"""Table of the characters that all output shows as escapes (safety promise 17).

All output uses it: the screen (`ui/text/sanitiser.py`), `sessions export` (`session/export.py`), the
headless mode and every command. The table contains characters that a terminal may act on or that a reader cannot
see: controls, format and private-use characters, unassigned ones, lone surrogates, line and paragraph separators,
spaces other than U+0020, fillers, and variation selectors.

Text for reading has three exceptions:

- line feeds and tabs;
- spaces of ordinary typography (`TYPOGRAPHY`);
- joiners and selectors inside a sequence that needs them: an emoji such as a family or a red heart, or a word of a
  script whose letters join. Anywhere else they are escaped, also directly beside such a sequence.

The screen also reads calmly with the marks of ordinary writing (`SILENT`, `WRITING`). The approval dialog has no
exceptions (`ui.text.sanitiser.visible`).
"""

import re
import unicodedata
from functools import lru_cache

TYPOGRAPHY = {"\u00a0": " ", "\u202f": " ", "\u3000": "  ", "\u2800": " "}
"""Spaces of ordinary text, each with U+0020 spaces of the same width: no-break, narrow no-break, ideographic, and an
empty Braille cell."""
SILENT = frozenset(
    map(chr, (0x061C, 0x200B, 0x200C, 0x200E, 0x200F, 0x2060, *range(0x180B, 0x180E), 0x180F, *range(0xE0100, 0xE01F0)))
)
"""Marks of direction, places where a word may break, a joiner's opposite, and selectors of a letter's form: without a
cell, and none moves other text."""
WRITING = {"\u00ad": "", "\u205f": " "} | {chr(code): " " for code in range(0x2000, 0x200B)}
"""The soft hyphen and the spaces of a fixed width, and what stands for each on the screen."""

_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_KEPT = "\n\t"

_SUSPECT = re.compile(
    "[^\n\t -~\u00a1-\u00ac\u00ae-\u02ff\u0391-\u03a1\u03a3-\u0481\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3]"
)
"""Matches any character except common ones outside the table; a quick test for most texts."""

_EMOJI = (
    "[\u00a9\u00ae\u203c-\u2049\u2122-\u2139\u2190-\u27ff\u2900-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_ONE_EMOJI = f"{_EMOJI}(?:[\ufe0e\ufe0f]|[\U0001f3fb-\U0001f3ff])?"
_JOINING = (
    "[\u0620-\u064a\u066e-\u06d3\u06d5\u06fa-\u06ff\u0710-\u072f\u0750-\u077f\u08a0-\u08c7"
    "\u0901-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17dc]"
)
_JOINED = re.compile(
    f"({_ONE_EMOJI}(?:\u200d{_ONE_EMOJI})*|[#*0-9]\ufe0f\u20e3|(?<={_JOINING})[\u200c\u200d](?={_JOINING}))"
)
"""Matches a sequence that needs its joiners and selectors."""
_LETTER_JOINERS = ("\u200c", "\u200d")
_JOINER_SIGNS = "\u200c\u200d\ufe0e\ufe0f"
_JOINERS = re.compile(f"[{_JOINER_SIGNS}]")
EMOJI_PARTS = frozenset(map(chr, (*range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400))))
"""Characters that some terminals join to their neighbour: the letters of flags, and skin tones."""
_FLAG_LETTERS = {0x1F1E6 + place: chr(ord("A") + place) for place in range(26)}
_TONES = "\U0001f3fb-\U0001f3ff"
_SKIN_TONES = re.compile(f"((?:(?![{_TONES}]){_EMOJI})?)([{_TONES}]+)")
_IN_SEQUENCE = re.compile(f"[{_JOINER_SIGNS}{''.join(sorted(EMOJI_PARTS))}]")

_STRING = r"[^\x07\x18\x1a\x1b\x9c\n\r]*"
"""Contents of an OSC, DCS, SOS, PM or APC."""
SEQUENCE = re.compile(
    rf"\x1b[\]PX^_]{_STRING}(?:\x07|\x1b\\|\x9c)?"
    # As one character, they begin a string only if it ends: text that was encoded twice is full of them.
    r"|[\x90\x98\x9d-\x9f][^\x07\x18\x1a\x1b\x90\x98\x9c-\x9f\n\r]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]?"  # CSI
    r"|\x1b[\x20-\x2f]*[\x30-\x7e]?"
)
"""Control sequences of a terminal, ended or not."""
_CERTAIN_SEQUENCE = re.compile(
    rf"\x1b[\]PX^_]{_STRING}(?:\x07|\x1b\\)"
    r"|\x1b\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]"
    r"|\x1b[\x20-\x2f]*[\x30-\x7e]"
)
"""Control sequences that are ended and begin with ESC; of an unended one, only its beginning."""

SURROGATES_NOTE = "# Bytes that are not text are escapes such as \\udc80"
"""First line of a diff in which lone surrogates are escapes, see `escape_surrogates`."""
_HALF = re.compile("[\ud800-\udfff]")
_BEFORE_HALF = re.compile("\\\\+(?=ud[89a-f][0-9a-f]{2}|[\ud800-\udfff])")
_HALF_ESCAPE = re.compile(r"(\\+)(ud[89a-f][0-9a-f]{2})")


@lru_cache(maxsize=4096)
def is_invisible(character: str) -> bool:
    """True if the character is in the table."""
    category = unicodedata.category(character)
    if category in _CATEGORIES or (category == "Zs" and character != " "):
        return True
    code = ord(character)
    return character in _FILLERS or any(first <= code <= last for first, last in _SELECTORS)


def escape_of(character: str) -> str:
    """Return the escape of a character: `\\x1b`, `\\u202e` or `\\U000e0041`."""
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escapes_in(text: str) -> dict[int, str]:
    """Return a table for `str.translate` that escapes the text; line feeds and tabs stay."""
    return {ord(one): escape_of(one) for one in set(text) if one not in _KEPT and is_invisible(one)}


def without_sequences(text: str) -> str:
    """Return a text without the control sequences of a terminal, such as those that colour the output of a program.

    Nothing else is lost: an unended sequence leaves its text, and characters that only some terminals take for the
    beginning of a sequence (U+0080 to U+009F) stay.
    """
    return _CERTAIN_SEQUENCE.sub("", text) if "\x1b" in text else text


def escaped(text: str) -> str:
    """Return a text for reading, with the characters of the table as escapes.

    CR LF becomes LF. The exceptions in the module's docstring apply.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = text.replace("\r\n", "\n")
    table = {code: shown for code, shown in escapes_in(text).items() if chr(code) not in TYPOGRAPHY}
    if not table:
        return text
    if _JOINERS.search(text) is None:
        return text.translate(table)
    # A sequence with an unassigned character is escaped: no terminal draws it as one glyph.
    broken = table.keys() - set(map(ord, _JOINER_SIGNS))
    pieces = enumerate(_JOINED.split(text))
    return "".join(
        piece if place % 2 and broken.isdisjoint(map(ord, piece)) else piece.translate(table) for place, piece in pieces
    )


def escaped_json(line: str) -> str:
    """Return a line of JSON with JSON escapes for the characters of the table."""
    return _SUSPECT.sub(lambda match: _json_escape(match[0]) if is_invisible(match[0]) else match[0], line)


def split_sequences(text: str) -> str:
    """Return a text without the joiners, selectors and skin tones of its emoji, and with flags as letters.

    Terminals disagree about the width of such a sequence, but not about that of its parts. A skin tone or a joiner on
    nothing becomes an escape; a joiner between letters stays.
    """
    if _IN_SEQUENCE.search(text) is None:
        return text
    pieces = enumerate(_JOINED.split(text))
    apart = "".join(
        piece.replace("\u200d", escape_of("\u200d")) if place % 2 == 0 else _apart(piece) for place, piece in pieces
    )
    return _SKIN_TONES.sub(lambda match: match[1] or escape_of(match[2][0]), apart).translate(_FLAG_LETTERS)


def _apart(sequence: str) -> str:
    return sequence if sequence in _LETTER_JOINERS else _JOINERS.sub("", sequence)


def _json_escape(letter: str) -> str:
    # JSON has escapes for units of UTF-16 only.
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def escape_surrogates(text: str) -> str:
    """Return a text that JSON can express: lone surrogates become escapes such as `\\udc80`.

    A backslash before text that looks like such an escape is doubled. A text without surrogates stays as it is.
    """
    if _HALF.search(text) is None:
        return text
    doubled = _BEFORE_HALF.sub(lambda match: match[0] * 2, text)
    return _HALF.sub(lambda match: escape_of(match[0]), doubled)


def unescape_surrogates(text: str) -> str:
    """Undo `escape_surrogates`."""

    def read(match: re.Match[str]) -> str:
        backslashes, letters = match[1], match[2]
        literal = "\\" * (len(backslashes) // 2)
        return literal + (chr(int(letters[1:], 16)) if len(backslashes) % 2 else letters)

    return _HALF_ESCAPE.sub(read, text)


_TICKS = re.compile("`+")


def code_fence(text: str, least: int) -> str:
    """Return the backticks around a text as code: at least so many, and more than any run of them in it."""
    return "`" * max(least, max(map(len, _TICKS.findall(text)), default=0) + 1)


_BEGIN = "[… "
_LINES = re.compile(r"^\[… .*? \(([\d,]+) lines?\) left out here; ", re.MULTILINE)


def left_out_note(amount: str, lines: int | None, where: str) -> str:
    """Return the note on what is left out.

    Args:
        amount: what is left out, such as `9,000 of 39,000 bytes`.
        lines: number of whole lines in it; None: not counted.
        where: says where all of it is.
    """
    counted = "" if lines is None else f" ({lines:,} {'line' if lines == 1 else 'lines'})"
    return f"{_BEGIN}{amount}{counted} left out here; {where} …]"


def whole_count(text: str) -> int:
    """Return the number of lines of a text, where each note of `left_out_note` counts as the lines that it names."""
    notes = _LINES.findall(text) if _BEGIN in text else ()
    return text.count("\n") + 1 - len(notes) + sum(int(note.replace(",", "")) for note in notes)
