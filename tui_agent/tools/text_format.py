"""The format of text files: encoding, byte order mark, line endings. Text that was read can be written back exactly."""

import codecs
import re
from dataclasses import dataclass

from tui_agent.protocol.errors import ToolError

SAMPLE_SIZE = 64 * 1024
"""Bytes at the start of a file that decide its format, the same for every tool."""

_BINARY_SAMPLE = 8_192
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")
_MISLEADING = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Encoding and byte order mark of a file."""

    encoding: str = "utf-8"
    mark: bytes = b""
    """Byte order mark, preserved when the file is written."""

    @property
    def errors(self) -> str:
        """Lossless error handler: an invalid byte becomes a lone surrogate."""
        return "surrogatepass" if self.encoding.startswith("utf-16") else "surrogateescape"

    @property
    def words(self) -> str:
        """Name of the format for messages; empty for plain UTF-8."""
        if self.mark and self.encoding == "utf-8":
            return "UTF-8 with byte order mark"
        return {"utf-8": "", "cp1252": "Windows-1252 (not valid UTF-8)"}.get(self.encoding, self.encoding.upper())

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
        return text

    def encode(self, text: str) -> bytes:
        """Encode a whole file, with its byte order mark.

        Raises:
            UnicodeEncodeError: the encoding lacks a character of the text.
        """
        return self.mark + text.encode(self.encoding, self.errors)


def format_of(sample: bytes) -> TextFormat:
    """Return the format of a file.

    Without a byte order mark it is UTF-8, or Windows-1252 if the sample has bytes beyond ASCII and none of them form a
    valid UTF-8 character.

    Args:
        sample: first `SAMPLE_SIZE` bytes of the file, or all of it.
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return TextFormat(encoding, mark)
    if sample.isascii():
        return TextFormat()
    is_whole = len(sample) < SAMPLE_SIZE
    text = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode(sample, is_whole)
    beyond = [character for character in text if character > "\x7f"]
    damaged = any("\udc80" <= character <= "\udcff" for character in beyond)
    sound = any(not "\udc80" <= character <= "\udcff" for character in beyond)
    return TextFormat("cp1252") if damaged and not sound else TextFormat()


def is_binary(sample: bytes) -> bool:
    """Return True if a file that begins with `sample` is binary: it has a NUL near its start and no UTF-16 mark."""
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in sample[:_BINARY_SAMPLE]


def printable(text: str) -> str:
    """Return `text` with lone surrogates, which stand for invalid bytes, and NUL as escapes."""
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
