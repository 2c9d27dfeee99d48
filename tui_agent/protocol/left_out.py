"""Notes in place of the middle of a long result. Tools write them for the model, and the screen counts with them."""

import re

_BEGIN = "[… "
_LINES = re.compile(r"^\[… .*? \(([\d,]+) lines?\) left out here; ", re.MULTILINE)


def left_out_note(amount: str, lines: int | None, where: str) -> str:
    """Return the note on what is left out, such as `9,000 of 39,000 bytes`, with the whole lines if they are counted.

    `where` says where all of it is.
    """
    counted = "" if lines is None else f" ({lines:,} {'line' if lines == 1 else 'lines'})"
    return f"{_BEGIN}{amount}{counted} left out here; {where} …]"


def whole_count(text: str) -> int:
    """Return the number of lines with those that notes among them count, and without these notes."""
    notes = _LINES.findall(text) if _BEGIN in text else ()
    return text.count("\n") + 1 - len(notes) + sum(int(note.replace(",", "")) for note in notes)
