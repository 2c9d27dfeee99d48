"""Conversion of the bytes of one answer into the engine's events, without any I/O."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.provider import StreamEvent

from .provider_failures import ErrorFactory
from .response_reader import ResponseReader

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


class ResponseDecoder:
    """Parser of one answer."""

    def __init__(self, errors: ErrorFactory, request_id: str | None, is_taken: Callable[[str], bool]) -> None:
        self._errors = errors
        self._request_id = request_id
        self._events = SseReader()
        self._reader = ResponseReader(is_taken)

    @property
    def complete(self) -> bool:
        """True once the model has finished."""
        return self._reader.complete

    def facts(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield the events in the next bytes.

        Raises:
            ProviderError: the bytes are not of the Messages API, or report an error.
        """
        for event in self._parsed(chunk):
            if event.get("type") == "error":
                raise self._errors.of_event(event, self._request_id)
            yield from self._reader.read(event)

    def finish(self) -> list[StreamEvent]:
        """Return the last events of an answer that only lacks `message_stop`; see `ResponseReader.finish`."""
        return self._reader.finish()

    def _parsed(self, chunk: bytes) -> Iterator[JsonObject]:
        try:
            for event in self._events.feed(chunk):
                yield from _objects(event)
        except (ValueError, RecursionError) as error:
            words = _fault(error)
            raise self._errors.write("bad_response", words, status=200, request_id=self._request_id) from None


def _fault(error: ValueError | RecursionError) -> str:
    """Return what is wrong with an event; the messages of the parsers name bytes and characters that no one sees."""
    if isinstance(error, UnicodeDecodeError):
        return "an event is not UTF-8 text"
    if isinstance(error, json.JSONDecodeError | RecursionError):
        return "an event is not valid JSON"
    return str(error)


def _objects(event: ServerSentEvent) -> Iterator[JsonObject]:
    """Yield the event's JSON object, if it has one.

    Some servers mark an error only by the event's name, or send plain text instead of JSON.
    """
    if event.name != "error":
        value: object = json.loads(event.data)
        if is_object(value):
            yield value
        return
    try:
        error: object = json.loads(event.data)
    except ValueError:
        error = {"error": {"message": event.data}}
    yield {**(error if is_object(error) else {"error": {"message": event.data}}), "type": "error"}
