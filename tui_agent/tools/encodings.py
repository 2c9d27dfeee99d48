"""Detection of encodings other than UTF-8. A result is a fact to build on, or nothing: a guess is not knowledge."""

from functools import lru_cache

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
