"""The format of text files: encoding, byte order mark, line endings. Text that was read can be written back exactly."""

import asyncio
import codecs
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from tui_agent.protocol.errors import ToolError

_MULTI_BYTE = ("gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949")
_SINGLE_BYTE = ("cp1252", "cp1250", "cp1251", "koi8_r", "iso8859_2", "iso8859_15", "cp866")

_NEVER_CERTAIN = ("cp1250", "iso8859_2", "iso8859_15")
"""Encodings that differ from each other in few letters."""

_FEWEST_CHARACTERS = 16
"""Fewest characters beyond ASCII that say enough about an encoding."""

_MOST_CHAOS = 0.05
_FURTHER_CHAOS = 0.05
_LEAST_COHERENCE = 0.4
_FURTHER_COHERENCE = 0.1
"""Limits for the library's measures of how odd a text looks, and how much it looks like a language: for the best
candidate, and between it and the others."""

_MOST_HALF_WIDTH = 0.2
"""Most katakana of half width in a text: other encodings read as Shift-JIS are full of them."""

_MOST_BYTES = 8 * 1024


@lru_cache(maxsize=16)
def detect_encodings(sample: bytes) -> tuple[str, ...]:
    """Return the encoding of a text that is not UTF-8; empty if it is not certain. Blocks for up to 0.1 s.

    Several are returned, the most common first, if they all read the text in the same way.
    """
    # ASCII says nothing about an encoding, and the library's time grows with the text.
    lines = [line for line in sample[: sample.rfind(b"\n") + 1].split(b"\n") if not line.isascii()]
    text = b"\n".join(lines or [sample])[:_MOST_BYTES]
    text = text[: text.rfind(b"\n") + 1] or text
    # Imported late: few files need it.
    from charset_normalizer import from_bytes

    found = list(from_bytes(text, cp_isolation=[*_MULTI_BYTE, *_SINGLE_BYTE]))
    if not found:
        return ()
    best, shown = found[0], str(found[0])
    others = [match for match in found[1:] if str(match) != shown]
    beyond = [character for character in shown if not character.isascii()]
    if len(beyond) < _FEWEST_CHARACTERS or best.chaos > _MOST_CHAOS:
        return ()
    if best.encoding in _MULTI_BYTE:
        half_width = sum("\uff61" <= character <= "\uff9f" for character in beyond)
        is_apart = all(match.chaos - best.chaos >= _FURTHER_CHAOS for match in others)
        return (best.encoding,) if is_apart and half_width <= len(beyond) * _MOST_HALF_WIDTH else ()
    is_apart = all(
        match.chaos - best.chaos >= _FURTHER_CHAOS or best.coherence - match.coherence >= _FURTHER_COHERENCE
        for match in others
    )
    if best.coherence < _LEAST_COHERENCE or not is_apart:
        return ()
    same = tuple(encoding for encoding in _SINGLE_BYTE if _decoded(text, encoding) == shown)
    return () if not same or same[0] in _NEVER_CERTAIN else same


def breaks_characters(before: bytes, after: bytes) -> bool:
    """Return True if a change of a file of unknown encoding makes it invalid in an encoding that it may have."""
    return any(_decoded(before, encoding) is not None and _decoded(after, encoding) is None for encoding in _MULTI_BYTE)


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


SAMPLE_SIZE = 64 * 1024
"""Bytes at the start of a file that decide its format, the same for every tool."""

_BINARY_SAMPLE = 8_192
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NAMES = {
    "cp1252": "Windows-1252",
    "cp1250": "Windows-1250",
    "cp1251": "Windows-1251",
    "gb18030": "GB18030",
    "big5hkscs": "BIG5-HKSCS",
    "cp932": "Shift-JIS (CP932)",
    "cp949": "EUC-KR (CP949)",
    "euc_jis_2004": "EUC-JP",
}
_SHIFT = re.compile(rb"\x1b\$(?:[@AB]|[()*][A-I])")
"""Matches what begins text beyond ASCII in the encodings of mails (ISO 2022), all bytes of which are ASCII."""
_SOUND_FOR_ONE_DAMAGED = 10
_INVALID = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")
_MISLEADING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Encoding, byte order mark and line endings of a file."""

    encoding: str = "utf-8"
    mark: bytes = b""
    """Byte order mark, preserved when the file is written."""
    is_certain: bool = True
    """False if the encoding is only a way to show the text."""
    others: tuple[str, ...] = ()
    """Encodings that the file may have as well, because its text does not tell them apart."""
    is_cr: bool = False
    """True if lines end in CR alone; the decoded text has LF instead."""

    @property
    def errors(self) -> str:
        """Lossless error handler: an invalid byte becomes a lone surrogate."""
        return "surrogatepass" if self.encoding.startswith("utf-16") else "surrogateescape"

    @property
    def words(self) -> str:
        """Name of the format for messages; empty for plain UTF-8."""
        if self.encoding == "utf-8" and not self.is_certain:
            return "not valid UTF-8 throughout; its encoding is not known"
        if self.encoding == "utf-8":
            return "UTF-8 with byte order mark" if self.mark else ""
        name = _NAMES.get(self.encoding, self.encoding.upper().replace("_", "-"))
        return name if self.is_certain else f"not valid UTF-8; its encoding is not known, shown as {name}"

    def decode(self, data: bytes) -> str:
        """Decode a whole file, without its byte order mark.

        Raises:
            ToolError: the bytes are invalid and could not be written back unchanged.
        """
        body = data[len(self.mark) :]
        try:
            text = body.decode(self.encoding, self.errors)
        except UnicodeDecodeError as error:
            raise ToolError(f"the text is not valid {self.encoding.upper()}: {error.reason}") from error
        if not self.is_cr:
            return text
        if "\n" in text:
            raise ToolError(
                "its lines end in CR at first, and differently later; convert it with a program run by bash"
            )
        return text.replace("\r", "\n")

    def encode(self, text: str) -> bytes:
        """Encode a whole file, with its byte order mark.

        Raises:
            UnicodeEncodeError: the encoding lacks a character of the text.
        """
        text = text.replace("\n", "\r") if self.is_cr else text
        return self.mark + text.encode(self.encoding, self.errors)

    def encode_change(self, old: bytes, text: str, removed: str, added: str) -> bytes:
        """Encode the new text of a file, in which `added` replaces `removed`.

        Raises:
            ToolError: the encoding lacks a character, or is not known well enough for the change.
        """
        how = "nothing was written: convert the file first, such as with iconv -f ENCODING -t UTF-8"
        fresh, kept = _BEYOND_ASCII.findall(added), _BEYOND_ASCII.findall(removed)
        doubt = f"the file is {self.words}; this change could make it unreadable; {how}"
        # The same characters in the same order keep their bytes, whatever the encoding is.
        if not self.is_certain and fresh and fresh != kept:
            raise ToolError(doubt)
        try:
            content = self.encode(text)
        except UnicodeEncodeError as error:
            raise ToolError(f"its encoding, {self.words}, has no {text[error.start]!r}; {how}") from error
        if not self.is_certain and breaks_characters(old, content):
            raise ToolError(doubt)
        for character in set(fresh).difference(kept) if self.others else ():
            if any(not _is_same_in(character, self.encoding, other) for other in self.others):
                names = f"{self.words} or {self.others[0].upper()}"
                raise ToolError(f"the file may be {names}, which have other bytes for {character!r}; {how}")
        return content


def format_of(sample: bytes) -> TextFormat:
    """Return the format of a file, by its first `SAMPLE_SIZE` bytes or all of it.

    Without a byte order mark it is UTF-8, also with a few invalid bytes, or the encoding that its text certainly has;
    otherwise UTF-8 or Windows-1252 as a way to show it.
    """
    is_cr = b"\r" in sample and b"\n" not in sample
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return TextFormat(encoding, mark, is_cr=is_cr)
    if is_utf_8(sample):
        return TextFormat(is_cr=is_cr)
    if found := detect_encodings(sample):
        return TextFormat(found[0], others=found[1:], is_cr=is_cr)
    _, sound = _utf_8_characters(sample)
    return TextFormat("utf-8" if sound else "cp1252", is_certain=False, is_cr=is_cr)


async def find_format(sample: bytes) -> TextFormat:
    """Return the format of a file as `format_of` does, without blocking the event loop."""
    return format_of(sample) if is_utf_8(sample) else await asyncio.to_thread(format_of, sample)


def whole_format(form: TextFormat, text: str) -> TextFormat:
    """Return the format of a file whose whole text was decoded by the format of its start."""
    if form.encoding != "utf-8" or not form.is_certain or _is_sound(*_count(text)):
        return form
    return replace(form, is_certain=False)


def is_utf_8(sample: bytes) -> bool:
    """Return True if a file that begins with `sample` is certainly UTF-8, perhaps with a few invalid bytes, or UTF-16
    with a byte order mark."""
    marked = sample.startswith(tuple(mark for mark, _ in _MARKS))
    if not marked and _SHIFT.search(sample):
        return False
    return marked or sample.isascii() or _is_sound(*_utf_8_characters(sample))


def _utf_8_characters(sample: bytes) -> tuple[int, int]:
    """Return the number of invalid bytes, and of characters beyond ASCII, of a sample read as UTF-8."""
    is_whole = len(sample) < SAMPLE_SIZE
    return _count(codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(sample, is_whole))


def _count(text: str) -> tuple[int, int]:
    damaged = len(_INVALID.findall(text))
    return damaged, len(_BEYOND_ASCII.findall(text)) - damaged if damaged else 1


def _is_sound(damaged: int, sound: int) -> bool:
    # Two bytes of another encoding often form a character of UTF-8 by accident.
    return damaged * _SOUND_FOR_ONE_DAMAGED <= sound


def _is_same_in(character: str, one: str, other: str) -> bool:
    try:
        return character.encode(one) == character.encode(other)
    except UnicodeEncodeError:
        return False


def is_binary(sample: bytes) -> bool:
    """Return True if a file that begins with `sample` is binary: it has a NUL near its start and no UTF-16 mark.

    UTF-32 counts as binary.
    """
    if sample.startswith(codecs.BOM_UTF32_LE):
        return True
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in sample[:_BINARY_SAMPLE]


def printable(text: str) -> str:
    """Return `text` with lone surrogates, which stand for invalid bytes, and NUL as escapes."""
    # Nearly every text is plain, and looking is far cheaper than replacing.
    return _UNPRINTABLE.sub(_escaped, text) if not text.isascii() or "\0" in text else text


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 line`, `1,200 lines`."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def printable_name(name: str) -> str:
    """Return a file name with characters that would break or reorder a line as escapes."""
    return _MISLEADING.sub(_escaped, name)


def uses_crlf(text: str) -> bool:
    """Return True if most lines of `text` end in CR LF."""
    crlf = text.count("\r\n")
    return crlf > 0 and crlf * 2 > text.count("\n")


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
