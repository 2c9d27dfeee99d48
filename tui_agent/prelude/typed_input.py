"""Input that arrives before the app reads it: every byte in order, and the part of it that may be shown."""

import codecs

TYPE_CHECKING = False  # Not imported from `typing`, which would take longer to load than the whole prelude.

if TYPE_CHECKING:
    from typing import Final

LARGEST_INPUT: "Final" = 1 << 20
"""Bytes after which nothing more is read; the terminal keeps the rest for the app."""
BREAKS_TO_QUIT: "Final" = 2
"""Presses of `ctrl+c` in a row that end the program."""
LONGEST_WORDS = 1_000
"""Most characters of unsent text that a message names."""

_ESCAPE, _BREAK, _BACKSPACE, _ENTER = "\x1b", "\x03", "\x7f", "\r"
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_BREAK_SEQUENCES = ("\x1b[99;5u", "\x1b[27;5;99~")
"""`ctrl+c` in the kitty protocol, and with xterm's modifyOtherKeys."""

_NARROW = ((0x20, 0x7E), (0xA1, 0xAC), (0xAE, 0x2AF), (0x391, 0x3FF), (0x400, 0x482), (0x48A, 0x52F), (0x20AC, 0x20AC))
_WIDE = ((0x3041, 0x3096), (0x30A1, 0x30FA), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFF01, 0xFF5E))
"""Ranges of characters of one and of two cells in every terminal; no other characters are shown before the app runs."""


def cells(character: str) -> int:
    """Return the cells that a character takes; 0 if terminals may disagree."""
    code = ord(character)
    if not character.isprintable():
        return 0
    if any(first <= code <= last for first, last in _NARROW):
        return 1
    return 2 if any(first <= code <= last for first, last in _WIDE) else 0


class TypedInput:
    """Bytes of the terminal in order, with the text in the composer as far as it is certain.

    Text is certain until a key arrives whose effect only the app knows: Enter, an escape sequence, a paste.
    """

    def __init__(self) -> None:
        self.reads: list[tuple[bytes, float]] = []
        """The bytes of each read, with the seconds of silence behind them."""
        self.size = 0
        """Number of bytes."""
        self.shown = ""
        """Text to show in the composer."""
        self.breaks = 0
        """Presses of `ctrl+c` at the end."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._certain = True
        self._sequence = ""
        """Start of an escape sequence at the end; in a paste, of its end bracket."""
        self._in_paste = False
        self._lines = [""]
        """Everything typed as text; the last line is the draft."""

    def note_silence(self, seconds: float) -> None:
        """Note that nothing more arrived for a while."""
        if self.reads:
            data, before = self.reads[-1]
            self.reads[-1] = (data, before + seconds)

    def feed(self, data: bytes) -> None:
        """Take the bytes of one read."""
        self.reads.append((data, 0.0))
        self.size += len(data)
        for character in self._decoder.decode(data):
            if self._in_paste:
                self._take_pasted(character)
            elif self._sequence and character != _BREAK:
                self._take_sequence(character)
            else:
                self._take_key(character)

    @property
    def words(self) -> str:
        """The text that nothing has received, in one line."""
        text = " ".join(" ".join(self._lines).split())
        return "".join(each if each.isprintable() else "?" for each in text[:LONGEST_WORDS])

    def fit(self, width: int) -> None:
        """Show no more text once the composer's row is full; one cell is the cursor's."""
        while sum(map(cells, self.shown)) >= max(1, width):
            self.shown = self.shown[:-1]
            self._certain = False

    def _take_key(self, character: str) -> None:
        if character == _ESCAPE:
            self._sequence, self._certain = character, False
            return
        self._sequence = ""
        self.breaks = self.breaks + 1 if character == _BREAK else 0
        if character == _BREAK:
            self.shown, self._certain, self._lines[-1] = "", False, ""
        elif character == _BACKSPACE:
            self._lines[-1] = self._lines[-1][:-1]
            self.shown = self.shown[:-1] if self._certain else self.shown
        elif character == _ENTER:
            self._lines.append("")
            self._certain = False
        elif self._certain and cells(character):
            self._lines[-1] += character
            self.shown += character
        else:
            self._certain = False
            self._lines[-1] += character if character.isprintable() else " " * (character in "\t\n")

    def _take_sequence(self, character: str) -> None:
        """Take a character behind an escape: its key and the sequence's keys are the app's."""
        if character == _ESCAPE:
            self._sequence = character
            return
        self._sequence += character
        begun = self._sequence[1]
        if len(self._sequence) == 2 and begun in "[O":
            return
        if begun == "[" and not "@" <= character <= "~":
            return
        sequence, self._sequence = self._sequence, ""
        self._in_paste = sequence == _PASTE_BEGINS
        self.breaks = self.breaks + 1 if sequence in _BREAK_SEQUENCES else 0
        if self.breaks:
            self.shown, self._lines[-1] = "", ""

    def _take_pasted(self, character: str) -> None:
        bracket = self._sequence + character
        if bracket == _PASTE_ENDS:
            self._sequence, self._in_paste = "", False
        elif _PASTE_ENDS.startswith(bracket):
            self._sequence = bracket
        else:
            self._sequence = character if character == _ESCAPE else ""
            self._lines[-1] += character
