"""Input that arrives before the app reads it: every byte in order, and the part of it that may be shown."""

from .input_filter import InputFilter

TYPE_CHECKING = False  # Not imported from `typing`, which would take longer to load than the whole prelude.

if TYPE_CHECKING:
    from typing import Final

    from .input_filter import Unit

LARGEST_INPUT: "Final" = 1 << 20
"""Bytes after which nothing more is read; the terminal keeps the rest for the app."""
BREAKS_TO_QUIT: "Final" = 2
"""Presses of `ctrl+c` in a row that end the program."""
LONGEST_WORDS = 1_000
"""Most characters of unsent text that a message names."""
PLACEHOLDER: "Final" = "·"
"""Shown for a character of which terminals may disagree how wide it is."""
UNKNOWN: "Final" = "…"
"""Shown for text before a key whose effect only the app knows."""

_BREAKS = ("\x03", "\x1b[99;5u")
_BACKSPACES = ("\x7f", "\x08", "\x1b[127u")
_CLEAR = ("\x15", "\x1b[117;5u")
_ENTERS = ("\r", "\x1b[13u")
_NEW_LINES = ("\n", "\x1b[13;2u", "\x1b[13;3u")
_DISPUTED = (
    range(0x1160, 0x1200),
    range(0x2630, 0x2638),
    range(0x268A, 0x2690),
    range(0x3164, 0x3165),
    range(0x4DC0, 0x4E00),
    range(0xD7B0, 0xD800),
    range(0xFFA0, 0xFFA1),
    range(0xFFFD, 0xFFFE),
    range(0x1D300, 0x1D378),
    range(0x1F3FB, 0x1F400),
)
"""Letters that form a syllable with the one before, signs that are wide since Unicode 16, U+FFFD, and skin tones."""
_FIRST_EMOJI = "\u2600"
_JOINER = "\u200d"
_FORMS = "\ufe0e\ufe0f\u20e3"
"""Signs that make one of the character before: text, an emoji, a key cap."""


def cells(character: str) -> int:
    """Return the cells that a character takes in every terminal; -1 if they may disagree."""
    if " " <= character <= "~":
        return 1
    # Imported here because most starts see no other text.
    import unicodedata

    kind, code = unicodedata.category(character), ord(character)
    if kind in ("Mn", "Me"):
        return 0
    if not (kind[0] in "LNPS" or kind == "Zs") or any(code in part for part in _DISPUTED):
        return -1
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


class TypedInput:
    """Bytes of the terminal in order, and the draft as far as it is known without the app."""

    def __init__(self) -> None:
        self.reads: list[tuple[bytes, float]] = []
        """The bytes of each read, with the seconds of silence behind them."""
        self.size = 0
        """Number of bytes."""
        self.breaks = 0
        """Presses of `ctrl+c` at the end."""
        self._filter = InputFilter()
        self._messages = [""]
        """Everything typed as text; the last one is the draft."""
        self._known_from = 0
        """Place in the draft behind a key whose effect only the app knows."""

    def note_silence(self, seconds: float) -> None:
        """Note that nothing more arrived for some seconds; ignored before the first bytes."""
        if self.reads:
            data, before = self.reads[-1]
            self.reads[-1] = (data, before + seconds)
            self._take(self._filter.rest(seconds))

    def feed(self, data: bytes) -> None:
        """Take the bytes of one read."""
        self.reads.append((data, 0.0))
        self.size += len(data)
        self._take(self._filter.feed(data))

    @property
    def shown(self) -> str:
        """Text to show in the composer: the line of the caret."""
        known = UNKNOWN * bool(self._known_from) + self._messages[-1][self._known_from :]
        return _painted(known.rpartition("\n")[2][:LONGEST_WORDS])

    def shown_in(self, width: int) -> str:
        """Return the text to show in a row; one of its cells is the cursor's."""
        text = self.shown
        for place, character in enumerate(text):
            width -= cells(character)
            if width <= 0:
                return _painted(text[:place])
        return text

    @property
    def words(self) -> str:
        """The text that nothing has received, in one line."""
        text = " ".join(" ".join(self._messages).split())
        return "".join(each if each.isprintable() else "?" for each in text[:LONGEST_WORDS])

    def _take(self, units: "list[Unit]") -> None:
        for kind, text, _ in units:
            if kind == "key":
                self._take_key(text)
            elif kind in ("text", "paste"):
                self.breaks = 0
                self._messages[-1] += text.replace("\r\n", "\n").replace("\r", "\n")

    def _take_key(self, key: str) -> None:
        self.breaks = self.breaks + 1 if key in _BREAKS else 0
        draft = self._messages[-1]
        if key in _ENTERS:
            self._messages.append("")
            self._known_from = 0
        elif key in _NEW_LINES:
            self._messages[-1] += "\n"
        elif key in _BACKSPACES:
            self._messages[-1] = draft[:-1]
            self._known_from = min(self._known_from, len(draft[:-1]))
        elif key in _BREAKS:
            self._messages[-1], self._known_from = "", 0
        elif key in _CLEAR and self._known_from <= (start := draft.rfind("\n") + 1):
            self._messages[-1] = draft[:start]
        else:
            self._known_from = len(draft)


def _painted(text: str) -> str:
    """Return what the row shows for a text. Of characters that form one emoji, of which terminals disagree how wide it
    is, only the first is shown."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    before = ""
    for character in text:
        if character in _FORMS or _continues_emoji(before, character):
            pass
        elif not _is_flag_letter(character):
            shown.append(_painted_alone(character))
        elif not _is_flag_letter(before):
            shown.append(PLACEHOLDER)
        else:
            shown[-1], before = before + character, ""
            continue
        before = character
    return "".join(shown)


def _continues_emoji(before: str, character: str) -> bool:
    if before == _JOINER:
        return character >= _FIRST_EMOJI
    return "\U0001f3fb" <= character <= "\U0001f3ff" and before >= _FIRST_EMOJI


def _is_flag_letter(character: str) -> bool:
    """Return True for half of a flag: two are two cells wide, one alone is as wide as the terminal likes."""
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _painted_alone(character: str) -> str:
    if character.isprintable():
        return character if cells(character) >= 0 else PLACEHOLDER
    return " " * max(cells(character), character == "\t")
