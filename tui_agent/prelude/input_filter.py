"""Filter of terminal input: cuts bytes into text, keys, pastes and replies before a parser sees them.

A terminal, a multiplexer or another program may send anything, in any pieces and at any time. The parser behind this
filter receives single keys in a form that it knows. The filter swallows replies of the terminal, releases of keys and
sequences that are malformed, and it never waits for a clock: its caller reports silence.

Enter in the middle of text that arrives faster than a user types belongs to a paste without brackets: a line break.
"""

import codecs

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, Literal, TypeAlias

    Kind: TypeAlias = Literal["text", "key", "event", "paste", "reply"]
    Unit: TypeAlias = tuple[Kind, str, str]
    """A kind; characters, the sequence of one key, or of one event such as a click, or the content of a paste or reply;
    for text, the Latin letter of the physical key if the terminal reports it."""

ESCAPE_SECONDS: "Final" = 0.1
"""Seconds of silence after which an escape is a key."""
BURST_SECONDS: "Final" = 0.03
"""Seconds of silence that end text which is faster than a user types."""
SILENCE_SECONDS: "Final" = 2.0
"""Seconds of silence after which a paste is delivered without its end, and a sequence given up."""
PASTE_BEGINS: "Final" = "\x1b[200~"
PASTE_ENDS: "Final" = "\x1b[201~"

_ESCAPE, _BREAK = "\x1b", "\x03"
_C1: "dict[str, str]" = {chr(0x40 + ord(second)): _ESCAPE + second for second in "OPX[]^_"}
"""Introducers in one character."""
_STRINGS = frozenset(("\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_"))
"""Introducers of OSC, DCS, SOS, PM and APC, which last until a terminator."""
_FIRST_IN_STRING = {"\x1b]": frozenset("0123456789lLI"), "\x1bP": frozenset("0123456789;<=>?!$+|{")}
"""First characters of what terminals send as OSC and DCS."""
_LONGEST_REPLY = 256
_LONGEST_SEQUENCE = 64
_CLICK = 3
_LONGEST_NUMBER = 7
_BURST_LETTERS = 2
"""Characters around an Enter from which on they come from no keyboard."""

_SHIFT, _ALT, _CTRL, _ALL_MODIFIERS = 1, 2, 4, 63
"""Bits of modifiers; caps lock and num lock are above them."""
_RELEASE = 3
_CONTROL_KEYS = (9, 13, 27, 127)
_FUNCTION_KEYS = frozenset((*range(57358, 57364), *range(57376, 57427), *range(57428, 57455)))
"""Keys without a character in the kitty protocol; a parser would type any other private number as a character."""
_PRIVATE = range(0xE000, 0xF900)
_NUMBERED_KEYS = frozenset((*range(1, 9), *range(11, 16), *range(17, 22), 23, 24, 57427))
"""Numbers of keys that end in a tilde."""
_LETTER_KEYS = frozenset("ABCDEFHPQS")
_BARE_KEYS = frozenset("abcdIORZG") | _LETTER_KEYS
"""Ends of keys without numbers: shifted arrows of rxvt, changes of the focus, and those above."""
_SS3_KEYS = frozenset("ABCDFHPQRSabcdjklmnopqrstuvwxy")
_OLD_KEYS = {
    "$": frozenset(("3", "7", "8", "23", "24")),
    "@": frozenset(("23", "24")),
    "^": frozenset(map(str, range(3, 35))),
}
"""Ends of rxvt's keys with modifiers, and their numbers."""
_LARGEST_WINDOW = 2000


class InputFilter:
    """Cuts the input of one terminal into units, whatever pieces it arrives in."""

    def __init__(self, escape_seconds: float = ESCAPE_SECONDS) -> None:
        self._escape_seconds = escape_seconds
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._units: list[Unit] = []
        self._rested = 0.0
        self._is_single = False
        """True if the last read had one byte."""
        self._held: str = ""
        """An unfinished sequence; of a string only its beginning."""
        self._ending = False
        """True if an escape has arrived in a string, which may begin its terminator."""
        self._late = False
        """True if a string or escape had no continuation in time."""
        self._pasted: list[str] | None = None
        """Parts of the current paste; None: no paste."""
        self._bracket = ""
        """Beginning of an end bracket at the end of the paste so far."""
        self._overdue = False
        """True if a part of the paste was delivered before its end arrived."""
        self._letters = 0
        """Characters of text since the last silence."""
        self._enters = ""
        """Enters behind text of which it is not known whether more text follows at once."""
        self._pouring = False
        """True while a paste without brackets arrives."""

    @property
    def patience(self) -> float | None:
        """Seconds of silence after which `rest` has something to do; None if nothing waits."""
        limits: list[float] = []
        if self._letters:
            limits.append(BURST_SECONDS)
        if self._held in (_ESCAPE, _ESCAPE * 2):
            limits.append(self._escape_seconds)
        elif self._held or self._pasted is not None:
            limits.append(SILENCE_SECONDS)
        return min((limit - self._rested for limit in limits if limit > self._rested), default=None)

    def feed(self, data: bytes) -> "list[Unit]":
        """Return the units that are complete with the bytes of one read."""
        text, self._is_single = self._decoder.decode(data), len(data) == 1
        if self._late:
            text = self._continued(text)
        if self._overdue and self._pasted is not None and not self._pasted and not self._bracket and _is_one_key(text):
            self._pasted, self._overdue = None, False
        self._rested = 0.0
        at = 0
        while at < len(text):
            if self._pasted is not None:
                at = self._take_pasted(self._pasted, text, at)
            elif self._held:
                at = self._take_held(text, at)
            else:
                at = self._take_plain(text, at)
        return self._taken()

    def rest(self, seconds: float) -> "list[Unit]":
        """Return the units that are complete because nothing followed for some seconds more."""
        self._rested += seconds
        if self._rested >= BURST_SECONDS:
            self._end_burst()
        if self._held in (_ESCAPE, _ESCAPE * 2):
            if self._rested >= self._escape_seconds:
                for escape in self._held:
                    self._emit("key", escape)
                self._held, self._late = "", True
        elif self._rested >= SILENCE_SECONDS:
            if self._pasted is not None:
                self._deliver()
                self._overdue = True
            elif self._held[:2] in _STRINGS:
                self._late = True
            else:
                self._held = ""
        return self._taken()

    def finish(self) -> "list[Unit]":
        """Return the text of a paste without its end, because reading stops; it may start again later."""
        self._end_burst()
        if self._pasted is not None:
            self._pasted.append(self._bracket)
            self._bracket = ""
            self._deliver()
            self._overdue = True
        return self._taken()

    def _taken(self) -> "list[Unit]":
        units, self._units = self._units, []
        return units

    def _emit(self, kind: "Kind", text: str, key: str = "") -> None:
        if kind != "text":
            self._settle_enters()
        self._units.append((kind, text, key))

    # --- text and pastes without brackets -----------------------------------------------------------------------------

    def _take_plain(self, text: str, at: int) -> int:
        """Take the characters before the next sequence, or its introducer; return where to continue."""
        if text[at] == _ESCAPE or text[at] in _C1:
            self._held = _C1.get(text[at], _ESCAPE)
            return at + 1
        if text[at] == _BREAK:
            self._emit("key", _BREAK)  # Whatever surrounds it.
            return at + 1
        end = at + 1
        while end < len(text) and text[end] not in (_ESCAPE, _BREAK) and text[end] not in _C1:
            end += 1
        run = "".join(each for each in text[at:end] if not "\x80" <= each < "\xa0")
        letters = sum(map(_is_letter, run))
        first_break = 0 if self._enters else run.find("\r")
        more = first_break >= 0 and any(map(_is_letter, run[first_break:]))
        if self._pouring or (more and self._letters + letters >= _BURST_LETTERS):
            self._pour(run)
        elif run.rstrip("\r\n") == "\\" and len(run) > 1 and len(run) == len(text):
            self._emit("key", "\x1b[13;2u")  # Shift+Enter as editors were set up to send it.
        else:
            self._take_typed(run)
        self._letters += letters
        return end

    def _pour(self, run: str) -> None:
        """Take a part of a paste without brackets; its last line break counts only if more follows."""
        lines = (self._enters + run).replace("\r\n", "\n").replace("\r", "\n")
        kept = lines.rstrip("\n")
        self._pouring, self._enters = True, ""
        pasted = "".join(each for each in kept if each in "\n\t" or _is_letter(each))
        if pasted:
            self._emit("paste", pasted)
        self._enters = "\r" * (len(lines) - len(kept))

    def _take_typed(self, run: str) -> None:
        text = run.rstrip("\r")
        if run != text and self._letters + sum(map(_is_letter, text)) < 2:
            text = run  # A user may be as fast with a letter and Enter.
        for character in text:
            if _is_letter(character) and character != "\t":
                kind, before, key = self._units[-1] if self._units else ("", "", "")
                if kind == "text" and not key:
                    self._units[-1] = ("text", before + character, "")
                else:
                    self._emit("text", character)
            elif character != "\x07" or self._is_single:
                # A bell among other characters ends a reply whose beginning was lost: no user is that fast.
                self._emit("key", character)
        self._enters += run[len(text) :]

    def _settle_enters(self) -> None:
        """Let Enters behind text act; at the end of a paste they are not part of it."""
        enters, self._enters = self._enters, ""
        if not self._pouring:
            for enter in enters:
                self._units.append(("key", enter, ""))

    def _end_burst(self) -> None:
        self._settle_enters()
        self._letters, self._pouring = 0, False

    # --- pastes -------------------------------------------------------------------------------------------------------

    def _take_pasted(self, parts: list[str], text: str, at: int) -> int:
        """Take pasted text. Everything up to the end bracket is text, also an escape sequence.

        Terminals remove that bracket from pasted text. If one does not, the last one of the same read counts, because
        no key sends it.
        """
        whole = self._bracket + text[at:]
        end = _end_of_paste(whole)
        if end is None:
            self._bracket = _begun_bracket(whole)
            parts.append(whole[: len(whole) - len(self._bracket)])
            return len(text)
        parts.append(whole[:end])
        rest = len(whole) - end - len(PASTE_ENDS)
        self._deliver()
        self._pasted, self._bracket, self._overdue = None, "", False
        return len(text) - rest

    def _deliver(self) -> None:
        """Emit the paste so far."""
        pasted, self._pasted = "".join(self._pasted or ()), []
        if pasted:
            self._emit("paste", pasted)

    # --- sequences ----------------------------------------------------------------------------------------------------

    def _take_held(self, text: str, at: int) -> int:
        """Take what follows the beginning of a sequence; return where to continue."""
        held, character = self._held, text[at]
        if held in (_ESCAPE, _ESCAPE * 2):
            return self._take_second(character, at)
        if held[:2] in _STRINGS:
            return self._take_string(text, at)
        start = 3 if held.startswith(_ESCAPE * 2) else 2
        introducer, body = held[start - 2 : start], held[start:]
        if body[:1] == "M" and not _is_control(character):
            # A click in the oldest form: three characters follow.
            self._held = held + character if len(body) < _CLICK else ""
        elif " " <= character <= "?" and not (character == "$" and body in _OLD_KEYS["$"]):
            # A number too long for a key; its end is still awaited.
            self._held = held + character if len(body) < _LONGEST_SEQUENCE else f"{introducer}!"
        elif character != "$" and not "@" <= character <= "~":
            # Not part of any sequence: what came before it is malformed.
            self._held = ""
            return at + (character == "\x07")
        elif not body and introducer == "\x1b[" and character in "[M":
            self._held = held + character  # The Linux console's function keys, and the click.
        else:
            self._held = ""
            if start == 3:
                self._take_escaped(introducer, body, character)
            else:
                self._take_complete(introducer, body, character)
        return at + 1

    def _take_escaped(self, introducer: str, body: str, end: str) -> None:
        """Take a sequence behind an escape: Alt and an arrow in one of the old forms, or two keys."""
        if not body and end in "ABCDFH":
            self._emit("key", f"\x1b[1;3{end}")
        else:
            self._emit("key", _ESCAPE)
            self._take_complete(introducer, body, end)

    def _take_complete(self, introducer: str, body: str, end: str) -> None:
        if introducer == "\x1bO":
            self._take_ss3(body, end)
        elif body == "[":
            if end in "ABCDE":
                self._emit("key", f"\x1b[[{end}")
        else:
            self._take_control_sequence(body, end)

    def _take_second(self, character: str, at: int) -> int:
        """Take the character behind an escape."""
        held = self._held
        if held == _ESCAPE * 2 and character not in "[O":
            self._emit("key", _ESCAPE)
        if character in "[O":
            self._held += character
        elif character == _ESCAPE:
            self._held = _ESCAPE * 2
        elif _ESCAPE + character in _STRINGS:
            self._held = _ESCAPE + character
        elif character in "\r\n":
            self._held = ""
            self._emit("key", "\x1b[13;3u")
        elif character in "\x08\x7f":
            self._held = ""
            self._emit("key", "\x1b\x7f")
        elif character == "\\":
            self._held = ""  # The terminator of a string whose beginning was lost.
        elif character == "\t" or not _is_control(character):
            self._held = ""
            self._emit("key", _ESCAPE + character)
        else:
            self._held = ""
            self._emit("key", _ESCAPE)
            return at
        return at + 1

    def _take_string(self, text: str, at: int) -> int:
        """Take characters of a string up to its terminator."""
        character = text[at]
        if self._ending:
            self._ending = False
            if character == "\\":
                self._end_string()
                return at + 1
            self._held = _ESCAPE  # The string is cut off by another sequence.
            return at
        if len(text) == 1 and character not in _FIRST_IN_STRING.get(self._held, character) and character > "\x1f":
            self._held = ""  # Typed behind `alt+]` or `alt+P`.
            return at
        if at == 0 and _is_control(character) and character not in "\x07\x1b\x9c":
            self._held = ""  # Read by itself, it is a key.
            return at
        if character == _ESCAPE:
            self._ending = True
        elif character == "\x9c" or (character == "\x07" and self._held[1] == "]"):
            self._end_string()
        elif character in "\x18\x1a":
            self._held = ""
        elif len(self._held) < _LONGEST_REPLY:
            self._held += character
        return at + 1

    def _end_string(self) -> None:
        held, self._held = self._held, ""
        if held.startswith("\x1b]"):
            self._emit("reply", held[2:])

    def _continued(self, text: str) -> str:
        """Return input behind a sequence that had no continuation in time, as it continues it or does not."""
        self._late = False
        if self._held:
            ends = "\x07" in text or "\x1b\\" in text or (self._ending and text[:1] == "\\")
            if len(text) == 1 or not ends:
                self._held, self._ending = "", False
        elif text[:2] in ("[?", "[>", "P>", "P1", "P0", "P!") or (text[:1] == "]" and text[1:2].isdigit()):
            return _ESCAPE + text  # The escape was pressed already, but a user does not type the rest in one read.
        return text

    def _take_ss3(self, body: str, end: str) -> None:
        if end == "M":
            self._emit("key", "\x1b[13;2u")  # Shift+Enter of Konsole; the keypad sends it only if asked to.
        elif end in _SS3_KEYS and not body:
            self._emit("key", f"\x1bO{end}")
        elif end in _LETTER_KEYS and (fields := _fields(body)):
            self._emit_key(f"1;{fields[-1][0] or 1}", end)

    # --- control sequences --------------------------------------------------------------------------------------------

    def _take_control_sequence(self, body: str, end: str) -> None:
        """Emit the key or event of a complete control sequence; replies and malformed ones have none."""
        if body[:1] == "<" and end in "Mm":
            fields = _fields(body[1:])
            if len(fields) == 3 and all(len(field) == 1 and field[0] is not None for field in fields):
                self._emit("event", f"\x1b[{body}{end}")
        elif body[:1] == "?" and body[-1:] == "$" and end == "y":
            if len(fields := _fields(body[1:-1])) == 2 and fields[1][0] in range(5) and fields[0][0]:
                self._emit("event", f"\x1b[{body}{end}")
        elif body == "200" and end == "~":
            self._settle_enters()
            self._pasted = []
        elif not body and (end in _BARE_KEYS or end == "~"):
            self._emit("event" if end in "IO" else "key", f"\x1b[{end}")
        elif body in _OLD_KEYS.get(end, ()):
            self._emit("key", f"\x1b[{body}{end}")
        elif end == "t":
            self._take_window(body)
        elif end in "u~" or end in _LETTER_KEYS:
            self._emit_key(body, end)

    def _take_window(self, body: str) -> None:
        """Emit the size of the window, which some terminals report among the keys."""
        fields = _fields(body)
        sizes = [field[0] or 0 for field in fields]
        is_size = len(sizes) == 5 and sizes[0] == 48 and min(sizes) > 0
        if is_size and max(sizes[1:3]) <= _LARGEST_WINDOW:
            self._emit("event", f"\x1b[{';'.join(map(str, sizes))}t")

    def _emit_key(self, body: str, end: str) -> None:
        """Emit a key in the form `number;modifiers`, unless it was released or is malformed."""
        fields = [*_fields(body), [None], [None]]
        if len(fields) < 3 or len(fields) > 5:
            return
        if end == "~" and fields[0] == [27] and len(fields) > 3:
            fields, end = [fields[2], fields[1], [None]], "u"  # xterm's modifyOtherKeys.
        modifiers = 1 if fields[1][0] is None else fields[1][0]
        event = fields[1][1] if len(fields[1]) > 1 else 1
        if not 1 <= modifiers <= 256 or event == _RELEASE:
            return
        bits = (modifiers - 1) & _ALL_MODIFIERS
        if end == "u":
            texts = "".join(chr(code) for code in fields[2] if code is not None and _is_text(code))
            self._emit_character(fields[0], bits, texts)
            return
        number = fields[0][0]
        if end == "~" and number in _NUMBERED_KEYS:
            self._emit("key", f"\x1b[{number};{bits + 1}~" if bits else f"\x1b[{number}~")
        elif end in _LETTER_KEYS and number in (None, 1):
            self._emit("key", f"\x1b[1;{bits + 1}{end}" if bits else f"\x1b[{end}")

    def _emit_character(self, codes: "Sequence[int | None]", bits: int, text: str) -> None:
        """Emit a key of the kitty protocol.

        Args:
            codes: its character, that with shift, and that of the same key on a Latin keyboard, as far as reported.
            bits: modifiers.
            text: what it types, if that is reported.
        """
        code, shifted, base = (*(each or 0 for each in codes), 0, 0)[:3]
        latin = chr(base) if 32 < base < 127 and code > 127 else ""
        code = 127 if code == 8 else code
        held = f";{bits + 1}" if bits else ""
        if (code in _PRIVATE and not text) or code in _CONTROL_KEYS:
            if code not in _PRIVATE or code in _FUNCTION_KEYS:
                self._emit("key", f"\x1b[{code}{held}u")
        elif bits & ~(_SHIFT | _ALT) or (bits & _ALT and not text):
            if _is_text(code):
                letter = (latin or latin_letter(chr(code)) or chr(code)).lower()
                self._emit("key", f"\x1b[{ord(letter[0])}{held}u")
        elif text or _is_text(code):
            if not text:
                text = chr(shifted) if bits & _SHIFT and _is_text(shifted) else chr(code)
                text = text.upper() if bits & _SHIFT and len(text.upper()) == 1 else text
            self._emit("text", text, latin.upper() if text.isupper() else latin)


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"


def _is_letter(character: str) -> bool:
    """Return True for a character of text."""
    return character == "\t" or not _is_control(character)


def _is_text(code: int) -> bool:
    """Return True for the number of a character that a key can type."""
    return code <= 0x10FFFF and not 0xD800 <= code < 0xE000 and not _is_control(chr(code))


def _fields(body: str) -> "list[list[int | None]]":
    """Return the numbers of a control sequence, with those that belong together; empty if one is none."""
    fields = [[_number(part) for part in field.split(":")] for field in body.split(";")] if body else []
    return [] if any(number == -1 for field in fields for number in field) else fields


def _number(text: str) -> "int | None":
    """Return a number, None for an empty text, and -1 for anything else."""
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else -1


def _is_one_key(text: str) -> bool:
    """Return True for the input of exactly one key."""
    alone = InputFilter()
    units = alone.feed(text.encode("utf-8", "replace")) + alone.rest(SILENCE_SECONDS)
    return len(units) == 1 and (units[0][0] in ("key", "event") or (units[0][0] == "text" and len(units[0][1]) == 1))


def _end_of_paste(text: str) -> "int | None":
    """Return where the end bracket begins; None if it has not come."""
    first = text.find(PASTE_ENDS)
    if first < 0:
        return None
    next_paste = text.find(PASTE_BEGINS, first)
    return text.rfind(PASTE_ENDS, first, len(text) if next_paste < 0 else next_paste)


def _begun_bracket(text: str) -> str:
    """Return the beginning of an end bracket with which a text ends."""
    return next((text[-size:] for size in range(len(PASTE_ENDS) - 1, 0, -1) if text.endswith(PASTE_ENDS[:size])), "")


# --- other keyboard layouts -------------------------------------------------------------------------------------------

_LAYOUTS = (
    ("йцукенгшщзфывапролдячсмить", "qwertyuiopasdfghjklzxcvbnm"),
    ("і", "s"),
    ("ςερτυθιοπασδφγηξκλζχψωβνμ", "wertyuiopasdfghjklzxcvbnm"),
    ("קראטוןםפשדגכעיחלךזסבהנמצ", "ertyuiopasdfghjklzxcvbnm"),
    ("ضصثقفغعهخحشسيیبلاتنمئءؤرىة", "qwertyuiopasddfghjklzxcvnm"),
    ("ㅂㅈㄷㄱㅅㅛㅕㅑㅐㅔㅁㄴㅇㄹㅎㅗㅓㅏㅣㅋㅌㅊㅍㅠㅜㅡ", "qwertyuiopasdfghjklzxcvbnm"),
)
"""Russian and Ukrainian, Greek, Hebrew, Arabic and Persian, Korean: letters, and the Latin letters of their keys."""

_LATIN: "dict[str, str]" = {}
for _letters, _keys in _LAYOUTS:
    for _letter, _key in zip(_letters, _keys, strict=True):
        # Scripts without capital letters have the small letter in both places.
        _LATIN[_letter.upper()] = _key.upper()
        _LATIN[_letter] = _key


def latin_letter(character: str) -> str:
    """Return the Latin letter of the key that types a character; empty if it is not known."""
    if "\uff21" <= character <= "\uff5a":
        letter = chr(ord(character) - 0xFEE0)  # Full-width letters follow the order of ASCII.
        return letter if letter.isalpha() else ""
    return _LATIN.get(character, "")
