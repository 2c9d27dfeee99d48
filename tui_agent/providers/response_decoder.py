"""Conversion of the bytes of one answer into the engine's events, without any I/O."""

import json
from collections.abc import Callable, Iterator

from tui_agent.protocol.messages import JsonObject, is_object
from tui_agent.protocol.provider import StreamEvent

from .provider_failures import ErrorFactory
from .response_reader import ResponseReader
from .sse_reader import ServerSentEvent, SseReader


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
            words = str(error)
            raise self._errors.write("bad_response", words, status=200, request_id=self._request_id) from None


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
