"""Parsing of server-sent events from bytes that arrive in pieces of any size."""

from dataclasses import dataclass

LONGEST_EVENT = 64 * 1024 * 1024
"""Largest event in bytes; a longer one ends the stream with an error."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event, without comments and unused fields."""

    name: str
    data: str


class SseReader:
    """Incremental parser. An event is complete only with the blank line after it."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._returned = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Take the next bytes and return the events they complete.

        Raises:
            ValueError: an event is not valid UTF-8, or longer than `LONGEST_EVENT`.
        """
        self._buffer += self._with_line_feeds(data)
        events: list[ServerSentEvent] = []
        start = 0
        while (end := self._buffer.find(b"\n\n", max(start, self._searched - 1))) >= 0:
            event = _read(self._buffer[start:end].decode("utf-8"))
            if event is not None:
                events.append(event)
            start = self._searched = end + 2
        if start:
            del self._buffer[:start]
        self._searched = len(self._buffer)
        if self._searched > LONGEST_EVENT:
            raise ValueError("an event of the stream is too long")
        return events

    def _with_line_feeds(self, data: bytes) -> bytes:
        """Convert line endings to LF; a CR at the end of one piece may belong to an LF at the start of the next."""
        if self._returned and data.startswith(b"\n"):
            data = data[1:]
        if not data:
            return data
        self._returned = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def _read(block: str) -> ServerSentEvent | None:
    name = ""
    data: list[str] = []
    for line in block.split("\n"):
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    return ServerSentEvent(name, "\n".join(data)) if data else None
