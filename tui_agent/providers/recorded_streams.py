"""Notes what a model sends, event by event, and sends it again: a real run can be run once more without the model.

Knows the words of `protocol.provider` and somebody who takes notes; what a note is kept in is not its matter.
"""

from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import get_args

from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.errors import ProviderError, ProviderErrorKind
from tui_agent.protocol.messages import JsonObject, UserMessage, is_object
from tui_agent.protocol.provider import (
    ModelInfo,
    ModelProvider,
    ModelRequest,
    StreamEnded,
    StreamEvent,
)

RecordStream = Callable[[JsonObject], object]


class RecordingProvider:
    """Another provider, with notes of everything it sends; implements `protocol.provider.ModelProvider`.

    A note is `{"request": 3, …}` with one of `begin` (what was asked, in short), `event`, `error` and `end`.
    """

    def __init__(self, provider: ModelProvider, note: RecordStream) -> None:
        self._provider = provider
        self._note = note
        self._requests = 0

    @property
    def model(self) -> ModelInfo:
        """The model asked."""
        return self._provider.model

    async def prepare(self) -> None:
        """As the provider does."""
        await self._provider.prepare()

    async def aclose(self) -> None:
        """As the provider does."""
        await self._provider.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """What the provider sends.

        Raises:
            ProviderError: the provider did.
        """
        self._requests += 1
        number = self._requests
        self._note({"request": number, "begin": {"model": self.model.name, "about": _about(request)}})
        stream = self._provider.stream(request)
        try:
            async for event in stream:
                self._note({"request": number, "event": _plain(event)})
                yield event
        except ProviderError as error:
            self._note({"request": number, "error": _plain_error(error)})
            raise
        finally:
            self._note({"request": number, "end": {}})
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()


class ReplayProvider:
    """Sends what was noted, a request's stream for each request like it; implements `ModelProvider`.

    A request gets the first stream that is left of those that answered a conversation with the same beginning and as
    many messages, so that agents beside one another get their own; else the next one.
    """

    def __init__(self, notes: Iterable[JsonObject]) -> None:
        """Reads notes; what cannot be read is left out."""
        streams: dict[object, _Stream] = {}
        for note in notes:
            _take(streams, note)
        self._streams = list(streams.values())
        name = self._streams[0].model if self._streams else ""
        self.model: ModelInfo = ModelInfo(name or "recorded-model")
        """The model that was asked."""

    @property
    def left(self) -> int:
        """Streams nobody asked for yet."""
        return len(self._streams)

    async def prepare(self) -> None:
        """There is nothing to prepare."""

    async def aclose(self) -> None:
        """There is nothing to close."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """The next stream, at once.

        Raises:
            ProviderError: it broke off when it was noted, or none is left.
        """
        if not self._streams:
            raise ProviderError("the recording has no answer left", kind="unavailable")
        about = _about(request)
        found = next((stream for stream in self._streams if stream.about == about), self._streams[0])
        self._streams.remove(found)
        for event in found.events:
            yield event
        if found.error is not None:
            raise found.error
        if not found.events or not isinstance(found.events[-1], StreamEnded):
            raise ProviderError("the recorded answer broke off", kind="stream_cut")


@dataclass(slots=True, eq=False)
class _Stream:
    """What one request was answered."""

    model: str = ""
    about: str = ""
    events: list[StreamEvent] = field(default_factory=list[StreamEvent])
    error: ProviderError | None = None


def _take(streams: dict[object, _Stream], note: JsonObject) -> None:
    number = note.get("request")
    if not isinstance(number, int):
        return
    stream = streams.setdefault(number, _Stream())
    begin, event, error = note.get("begin"), note.get("event"), note.get("error")
    if is_object(begin):
        stream.model, stream.about = str(begin.get("model", "")), str(begin.get("about", ""))
    if is_object(event) and (kind := _EVENTS.get(str(event.get("type")))) is not None:
        try:
            stream.events.append(_adapter(kind).validate_python(event.get("data")))
        except ValidationError:
            return
    if is_object(error):
        stream.error = _error_of(error)


_EVENTS: dict[str, type[StreamEvent]] = {kind.__name__: kind for kind in get_args(StreamEvent)}


@cache
def _adapter(kind: type[StreamEvent]) -> TypeAdapter[StreamEvent]:
    return TypeAdapter(kind)


def _plain(event: StreamEvent) -> JsonObject:
    kind = type(event)
    return {"type": kind.__name__, "data": _adapter(kind).dump_python(event, mode="json")}


def _plain_error(error: ProviderError) -> JsonObject:
    return {"text": str(error), "kind": error.kind, "status": error.status, "retry_after": error.retry_after}


@dataclass(frozen=True)
class _RecordedError:
    """What is kept of a provider's error."""

    text: str = "the model failed"
    kind: ProviderErrorKind = "unavailable"
    status: int | None = None
    retry_after: float | None = None


def _error_of(record: JsonObject) -> ProviderError:
    try:
        noted = TypeAdapter(_RecordedError).validate_python(record)
    except ValidationError:
        noted = _RecordedError()
    return ProviderError(noted.text, kind=noted.kind, status=noted.status, retry_after=noted.retry_after)


def _about(request: ModelRequest) -> str:
    """What tells the conversations of several agents apart: how it began, and how long it is."""
    first = next((message.text for message in request.messages if isinstance(message, UserMessage)), "")
    return f"{len(request.messages)} {sha256(first.encode('utf-8', 'replace')).hexdigest()[:16]}"
