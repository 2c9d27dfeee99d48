"""Cuts the bytes of a stream into server-sent events, whatever pieces they arrive in."""

from dataclasses import dataclass

LONGEST_EVENT = 64 * 1024 * 1024
"""Bytes one event may take before the stream is given up."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event; comments and fields nobody asked for are left out."""

    name: str
    data: str


class SseReader:
    """Collects bytes and gives the events they complete. An event without its blank line is never given."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._returned = False

    def feed(self, data: bytes) -> list[ServerSentEvent]:
        """Takes the next bytes.

        Raises:
            ValueError: an event is no UTF-8, or longer than anyone would send.
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
        """The same lines ended by line feeds; a carriage return may be cut off from its line feed."""
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
