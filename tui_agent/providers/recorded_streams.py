"""Recording and replay of a model's streams, so that a run can be repeated without the model.

The recorder passes each record to a callback; it does not know where records are stored.
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
    TokenCounter,
)

RecordStream = Callable[[JsonObject], object]
"""Receiver of one record."""


class RecordingProvider:
    """Wrapper that records all streams of another provider; implements `protocol.provider.ModelProvider`.

    A record is `{"request": 3, …}` with one of `begin` (model and fingerprint of the request), `event`, `error`, `end`.
    """

    def __init__(self, provider: ModelProvider, note: RecordStream) -> None:
        self._provider = provider
        self._note = note
        self._requests = 0

    @property
    def model(self) -> ModelInfo:
        """Model of the wrapped provider."""
        return self._provider.model

    async def prepare(self) -> None:
        """Prepare the wrapped provider."""
        await self._provider.prepare()

    async def aclose(self) -> None:
        """Close the wrapped provider."""
        await self._provider.aclose()

    async def count_tokens(self, request: ModelRequest) -> int | None:
        """Return the count of the wrapped provider; None if it has none."""
        return await self._provider.count_tokens(request) if isinstance(self._provider, TokenCounter) else None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Stream the answer of the wrapped provider and record it.

        Raises:
            ProviderError: the wrapped provider raised it.
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
    """Provider that replays recorded streams, each once; implements `ModelProvider`.

    A request gets the first remaining stream with the same fingerprint, so that agents that run at the same time get
    their own streams; without one, it gets the next remaining stream.
    """

    def __init__(self, notes: Iterable[JsonObject]) -> None:
        """Read records; invalid ones are skipped."""
        streams: dict[object, _Stream] = {}
        for note in notes:
            _take(streams, note)
        self._streams = list(streams.values())
        name = self._streams[0].model if self._streams else ""
        self.model: ModelInfo = ModelInfo(name or "recorded-model")
        """The recorded model."""

    @property
    def left(self) -> int:
        """Number of streams not replayed yet."""
        return len(self._streams)

    async def prepare(self) -> None:
        """Do nothing."""

    async def aclose(self) -> None:
        """Do nothing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Replay a stream, without its pauses.

        Raises:
            ProviderError: the recorded stream failed or is incomplete, or no stream is left.
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
            raise ProviderError("the recorded answer is incomplete", kind="stream_cut")


@dataclass(slots=True, eq=False)
class _Stream:
    """The recorded answer to one request."""

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
    return {
        "text": str(error),
        "summary": error.summary,
        "kind": error.kind,
        "status": error.status,
        "retry_after": error.retry_after,
    }


@dataclass(frozen=True)
class _RecordedError:
    """The recorded fields of a provider's error."""

    text: str = "the model failed"
    summary: str = ""
    kind: ProviderErrorKind = "unavailable"
    status: int | None = None
    retry_after: float | None = None


def _error_of(record: JsonObject) -> ProviderError:
    try:
        noted = TypeAdapter(_RecordedError).validate_python(record)
    except ValidationError:
        noted = _RecordedError()
    return ProviderError(
        noted.text, kind=noted.kind, status=noted.status, retry_after=noted.retry_after, summary=noted.summary
    )


def _about(request: ModelRequest) -> str:
    """Return a fingerprint of a request: its number of messages and a hash of the first user message.

    It distinguishes the conversations of several agents.
    """
    first = next((message.text for message in request.messages if isinstance(message, UserMessage)), "")
    return f"{len(request.messages)} {sha256(first.encode('utf-8', 'replace')).hexdigest()[:16]}"
