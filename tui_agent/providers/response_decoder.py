"""Conversion of the bytes of one answer into the engine's events, without any I/O."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.provider import StreamEvent

from .error_details import ErrorDetails, words_of
from .provider_failures import MESSAGES_API, ErrorFactory
from .response_reader import ResponseReader

LONGEST_EVENT = 64 * 1024 * 1024
"""Largest event in bytes; a longer one ends the stream with an error."""

_EVENT_STREAM = "text/event-stream"
_BLANK = b" \t\r\n\xef\xbb\xbf"
"""Blank bytes, and the mark that some servers put before UTF-8 text."""
_STRAY = "stray"
"""Name of a block of the stream that is not in the form of an event."""
_FIELDS = ("data", "event", "id", "retry")
_DONE = "[DONE]"
"""Last event of other APIs, which converting servers pass on."""
DONE: JsonObject = {"type": "ping", "is_last": True}
"""The same as an event; the Messages API ends with another one, and takes it for a ping."""


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
        # A blank line may lie across two pieces.
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
    if block.startswith("{"):
        # A gateway that loses its server writes the error itself into the stream, without the form of an event.
        return ServerSentEvent("error", block)
    lines = block.split("\n")
    is_stray = True
    for line in lines:
        field, _, value = line.partition(":")
        if field == "data":
            data.append(value.removeprefix(" "))
        elif field == "event":
            name = value.removeprefix(" ")
        # The last line may be cut off within the name of its field.
        is_stray = is_stray and field not in _FIELDS and not any(known.startswith(field) for known in _FIELDS)
    if is_stray:
        return ServerSentEvent(_STRAY, block)
    return ServerSentEvent(name, "\n".join(data)) if data else None


class ResponseDecoder:
    """Parser of one answer: of a stream, or of a whole message from a server that does not stream.

    The body decides which, not the media type: servers and gateways send streams under many names.
    """

    def __init__(
        self, errors: ErrorFactory, request_id: str | None, is_taken: Callable[[str], bool], media_type: str = ""
    ) -> None:
        """
        Args:
            is_taken: see `ResponseReader`.
            media_type: the media type of the answer, for an error.
        """
        self.events = 0
        """Number of events so far, without pings."""
        self._errors = errors
        self._request_id = request_id
        self._media_type = media_type
        self._stream = SseReader()
        self._reader = ResponseReader(is_taken)
        self._head: bytes | None = b""
        """Bytes before the first one that shows the form of the body; None once that is known."""
        self._whole: bytearray | None = None
        """A body that is not a stream."""
        self._strange: JsonObject = {}
        """The newest event that is not of the API."""

    @property
    def complete(self) -> bool:
        """True once the model has finished."""
        return self._reader.complete

    def facts(self, chunk: bytes) -> Iterator[StreamEvent]:
        """Yield the events in the next bytes.

        Raises:
            ProviderError: the bytes are not of the Messages API, or report an error.
        """
        if self._head is not None:
            self._head = (self._head + chunk).lstrip(_BLANK)
            if not self._head:
                return
            # An event begins with the name of a field or a colon, a whole body with one of these.
            chunk, is_stream = self._head, self._head[:1] not in (b"{", b"[", b"<")
            self._head = None
            self._whole = None if is_stream else bytearray()
        if self._whole is None:
            yield from self._read(self._parsed(lambda: self._stream.feed(chunk)))
            return
        self._whole += chunk
        if len(self._whole) > LONGEST_EVENT:
            raise self._bad("it is too long")

    def finish(self, *, is_whole: bool = True) -> Iterator[StreamEvent]:
        """Yield the last events of an answer that only lacks `message_stop`; see `ResponseReader.finish`.

        Args:
            is_whole: True if the body was not cut off.

        Raises:
            ProviderError: see `facts`.
        """
        if self._whole is not None:
            yield from self._read_whole(bytes(self._whole), is_whole=is_whole)
        elif is_whole:
            # A server may report its failure in a last event without the blank line after it.
            yield from self._read(self._last_events())
            if not self.events and self._media_type and not self._media_type.startswith(_EVENT_STREAM):
                said = words_of(self._strange)
                raise self._bad(f"{self._wrong_type()} (“{said}”)" if said else self._wrong_type())
        yield from self._reader.finish()
        if is_whole and self._strange and not self.complete and (words := words_of(self._strange)):
            # A gateway that loses its server may say so in any form.
            raise self._errors.write("stream_cut", words, status=200, request_id=self._request_id)

    def translated(self, event: JsonObject) -> Iterable[JsonObject]:
        """Return the events of the Messages API for one event of the stream."""
        return (event,)

    def events_of(self, message: JsonObject) -> Iterable[JsonObject] | None:
        """Return the events that a stream of a whole message would have; None if it is not a message."""
        answer = _answer_in(message)
        return None if answer is None else _events_of(answer)

    def _read(self, events: Iterable[JsonObject]) -> Iterator[StreamEvent]:
        for outer in events:
            for event in self.translated(outer):
                kind, is_known = event.get("type"), self._reader.knows(event)
                self.events += kind not in ("ping", _STRAY)
                if kind == "error" or (not is_known and event.get("error")):
                    raise self._errors.of_event(event, self._request_id)
                if (foreign := self._foreign(event)) is not None:
                    raise foreign
                if kind != "ping":
                    self._strange = {} if is_known else event
                yield from self._reader.read(event)

    def _read_whole(self, body: bytes, *, is_whole: bool) -> Iterator[StreamEvent]:
        """Yield the events of a whole message; a body that is none is an error, in the server's words."""
        text = body.decode("utf-8", "replace")
        message = _json_of(text)
        events = self.events_of(message) if is_object(message) else _listed_events(message, text)
        if events is not None and (is_object(message) or any(map(self._reader.knows, events))):
            yield from self._read(events)
        elif is_object(message):
            raise self._foreign(message) or self._errors.of_event(message, self._request_id)
        elif is_whole:
            title = ErrorDetails.of(text).words if text.startswith("<") else ""
            raise self._bad(f"{self._wrong_type()} (page “{title}”)" if title else self._wrong_type())

    def _last_events(self) -> Iterator[JsonObject]:
        with suppress(ValueError, RecursionError):
            for event in self._stream.feed(b"\n\n"):
                if (found := _object_of(event)) is not None:
                    yield found

    def _parsed(self, feed: Callable[[], list[ServerSentEvent]]) -> Iterator[JsonObject]:
        try:
            for event in feed():
                if (found := _object_of(event)) is not None:
                    yield found
        except (ValueError, RecursionError) as error:
            # The cause would repeat the server's text, which may contain the key.
            raise self._bad(_fault(error)) from None

    def _foreign(self, event: JsonObject) -> ProviderError | None:
        """Return the error for an answer of another API; None for any other object."""
        is_chat = str(event.get("object", "")).startswith("chat.completion")
        if event.get("error") or not is_chat or self._errors.api != MESSAGES_API:
            return None
        return self._bad('it is an answer of the Chat Completions API, which `kind = "openai"` speaks')

    def _wrong_type(self) -> str:
        return f"its content type is {self._media_type or 'missing'}, not {_EVENT_STREAM}"

    def _bad(self, words: str) -> ProviderError:
        return self._errors.write("bad_response", words, status=200, request_id=self._request_id)


def _is_answer(message: JsonObject) -> bool:
    """True for a whole message of the API, also one with a text instead of blocks."""
    is_message = message.get("type") == "message" or message.get("role") == "assistant"
    return is_message and isinstance(message.get("content"), list | str)


def _answer_in(body: JsonObject) -> JsonObject | None:
    """Return the whole message in a body, which may be wrapped in one more object; None if there is none."""
    inner = (one for one in body.values() if is_object(one))
    return next((one for one in (body, *inner) if _is_answer(one)), None)


def _json_of(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _listed_events(body: object, text: str) -> list[JsonObject]:
    """Return the events of a stream that came as an array, or one a line, without the form of events."""
    listed = body if is_array(body) else [_json_of(line) for line in text.splitlines()]
    return [event for event in listed if is_object(event)]


def _events_of(message: JsonObject) -> Iterator[JsonObject]:
    """Yield the events that a stream of the same message would have."""
    yield {"type": "message_start", "message": message}
    content: object = message["content"]
    blocks: Sequence[object] = content if is_array(content) else [{"type": "text", "text": content}]
    for index, block in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message.get("stop_reason"), "stop_details": message.get("stop_details")}
    yield {"type": "message_delta", "delta": delta, "usage": message.get("usage")}
    yield {"type": "message_stop"}


def _fault(error: ValueError | RecursionError) -> str:
    """Return what is wrong with an event; the messages of the parsers name bytes and characters that no one sees."""
    if isinstance(error, UnicodeDecodeError):
        return "an event is not UTF-8 text"
    if isinstance(error, json.JSONDecodeError | RecursionError):
        return "an event is not valid JSON"
    return str(error)


def _object_of(event: ServerSentEvent) -> JsonObject | None:
    """Return the event's JSON object; None if it has none.

    Some servers mark an error only by the event's name, or send plain text instead of JSON.
    """
    if event.data.strip() == _DONE:
        return DONE
    if event.name == _STRAY:
        return {"type": _STRAY, "message": ErrorDetails.of(event.data).words}
    if event.name != "error":
        try:
            value: object = json.loads(event.data)
        except json.JSONDecodeError:
            if event.data.startswith("{"):
                raise
            raise ValueError(f"an event is not valid JSON: {event.data}") from None
        return value if is_object(value) else None
    try:
        error: object = json.loads(event.data)
    except ValueError:
        error = {"error": {"message": event.data}}
    return {**(error if is_object(error) else {"error": {"message": event.data}}), "type": "error"}
