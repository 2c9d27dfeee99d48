"""A Messages API on loopback that plays a script, faults included, and refuses what the real one would refuse.

In a test:

```python
async with ScriptedMessagesServer([{"blocks": [{"type": "text", "text": "Hello"}]}]) as server:
    provider = AnthropicProvider("any-model", auth_token=server.token, base_url=server.base_url)
```

As a process of its own (one JSON line with port, address and token is printed; it runs until it is terminated):
`python -m tests.support.messages_server SCRIPT.json`, the file holding a list of replies. A process is asked over HTTP:
`GET /control/requests`, `POST /control/release/NAME`, `GET /control/reached/NAME` (answers once it is reached).
"""

import asyncio
import json
import secrets
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tests.support.wire_rules import problems_of, read_body
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest, LoopbackServer
from tui_agent.providers.demo.sse_writer import (
    SSE_HEADERS,
    BlockOut,
    RedactedOut,
    TextOut,
    ThinkingOut,
    ToolUseOut,
    UsageOut,
    block_frames,
    closing_frames,
    error_body,
    error_frame,
    frame,
    open_block_frames,
    opening_frames,
)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TextPart(_Part):
    type: Literal["text"] = "text"
    text: str
    repeat: int = 1
    """The text is said so often, as one block."""


class ThinkingPart(_Part):
    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = "c2lnbmF0dXJl"


class RedactedPart(_Part):
    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


class CallPart(_Part):
    type: Literal["tool_use"] = "tool_use"
    name: str
    input: dict[str, Any] = Field(default_factory=dict)
    id: str | None = None
    """None: a fresh one, unique in the server."""
    raw_input: str | None = None
    """Argument text sent instead of `input`, such as broken JSON."""
    unfinished: bool = False
    """The block is never ended."""


class PausePart(_Part):
    """The stream stops here until `release(until)` is called, or for some seconds (for processes of their own)."""

    type: Literal["pause"] = "pause"
    until: str | None = None
    seconds: float = 0.0


class FramePart(_Part):
    """Any event, sent as it is."""

    type: Literal["frame"] = "frame"
    event: str
    data: dict[str, Any] = Field(default_factory=dict)


class BytesPart(_Part):
    """Bytes that are no event at all; sent as Latin-1."""

    type: Literal["bytes"] = "bytes"
    text: str


Part = Annotated[
    TextPart | ThinkingPart | RedactedPart | CallPart | PausePart | FramePart | BytesPart,
    Field(discriminator="type"),
]


class ScriptedReply(_Part):
    """One answer of the server."""

    blocks: tuple[Part, ...] = ()
    stop_reason: str | None = "auto"
    """`auto`: `tool_use` where there are calls, else `end_turn`."""
    stop_details: dict[str, Any] | None = None
    model: str = "scripted-model"
    usage: dict[str, int] = Field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 20})
    piece: int | None = None
    """Letters a delta carries; None: about a word."""
    pace: float = 0.0
    """Seconds between chunks: frames, or single bytes."""
    byte_by_byte: bool = False
    """Every byte of the body is a chunk of its own."""
    ending: Literal["complete", "no_message_stop", "cut", "reset", "error"] = "complete"
    """How the stream ends; all but `complete` leave the closing events out. `error`: with an error event."""
    status: int = 200
    """Anything else answers with an error of `error_type` and `error_message`."""
    error_type: str = "api_error"
    error_message: str = "scripted error"
    error_details: dict[str, Any] | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    raw_body: str | None = None
    """Sent as the whole body, with `status` and `headers`."""
    wait_for: str | None = None
    """Nothing is answered before `release` of this name."""
    when: str | None = None
    """Only for a request that holds this text; replies without it are taken in order."""


_SCRIPT: TypeAdapter[list[ScriptedReply]] = TypeAdapter(list[ScriptedReply])


@dataclass(slots=True)
class RecordedRequest:
    """What the client sent."""

    body: Any
    headers: Mapping[str, str]
    at: float
    """Seconds on the monotonic clock."""
    peer: int = 0
    """The client's port: the same for requests on one connection."""
    problems: list[str] = field(default_factory=list)
    """What the API would refuse."""
    answered_at: float | None = None
    """The same clock, once the whole answer was sent."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client went away before its answer was complete."""

    def to_json(self) -> dict[str, Any]:
        times = {"at": self.at, "answered_at": self.answered_at}
        return {"body": self.body, "headers": dict(self.headers), "problems": self.problems, **times}


class ScriptedMessagesServer:
    """Plays a list of replies, one a request."""

    def __init__(self, script: Iterable[ScriptedReply | Mapping[str, Any]] = ()) -> None:
        self.token = secrets.token_hex(16)
        """What clients sign with; others are answered 401."""
        self.requests: list[RecordedRequest] = []
        self._script: list[ScriptedReply] = []
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._arrived = asyncio.Condition()
        self._calls = 0
        self._resuming = False
        self._server = LoopbackServer(self._handle)
        self.add(*script)

    @property
    def base_url(self) -> str:
        return self._server.base_url

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def problems(self) -> list[str]:
        """Everything the API would have refused so far, with the number of the request."""
        return [f"request {n}: {text}" for n, request in enumerate(self.requests) for text in request.problems]

    @property
    def left(self) -> int:
        """Replies that were not asked for yet."""
        return len(self._script)

    def add(self, *replies: ScriptedReply | Mapping[str, Any]) -> None:
        """Appends replies to the script."""
        self._script += _SCRIPT.validate_python(list(replies))

    def release(self, name: str) -> None:
        """Lets what waits for `name` go on, now or when it gets there."""
        self._gates[name].set()

    async def reached(self, name: str) -> None:
        """Returns once something waits for `name`."""
        await self._reached[name].wait()

    async def asked(self, count: int) -> None:
        """Returns once `count` requests came."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    async def _handle(self, request: HttpRequest, reply: HttpReply) -> None:
        if request.target.startswith("/control/"):
            await self._control(request, reply)
        elif request.headers.get("authorization") != f"Bearer {self.token}":
            await reply.send_json(401, error_body("authentication_error", "invalid x-api-key"))
        elif request.method != "POST" or request.target != "/v1/messages":
            await reply.send_json(404, error_body("not_found_error", request.target))
        else:
            await self._messages(request, reply)

    async def _control(self, request: HttpRequest, reply: HttpReply) -> None:
        """What a test asks of a server that runs in another process."""
        _, _, verb, *rest = request.target.split("/")
        if verb == "release":
            self.release(rest[0])
        elif verb == "reached":
            await self.reached(rest[0])
        await reply.send_json(200, {"requests": [one.to_json() for one in self.requests]} if verb == "requests" else {})

    async def _messages(self, request: HttpRequest, reply: HttpReply) -> None:
        record = await self._record(request)
        if record.problems:
            await reply.send_json(400, error_body("invalid_request_error", "; ".join(record.problems)))
            return
        scripted = self._next(request.body.decode("utf-8"))
        if scripted is None:
            await reply.send_json(400, error_body("invalid_request_error", "the script is used up"))
            return
        self._resuming = scripted.stop_reason == "pause_turn"
        try:
            await self._play(scripted, reply)
            record.answered_at = time.monotonic()
        except (ConnectionError, asyncio.CancelledError):
            record.gone.set()
            raise

    async def _record(self, request: HttpRequest) -> RecordedRequest:
        record = RecordedRequest(None, request.headers, time.monotonic(), request.peer)
        try:
            record.body = read_body(request.body)
            record.problems = problems_of(record.body, resuming=self._resuming)
        except ValueError as error:
            record.problems = [str(error)]
        async with self._arrived:
            self.requests.append(record)
            self._arrived.notify_all()
        return record

    def _next(self, body: str) -> ScriptedReply | None:
        for reply in self._script:
            if reply.when is None or reply.when in body:
                self._script.remove(reply)
                return reply
        return None

    async def _play(self, scripted: ScriptedReply, reply: HttpReply) -> None:
        if scripted.wait_for:
            await self._pass(scripted.wait_for)
        if scripted.raw_body is not None:
            await reply.send(scripted.status, scripted.raw_body.encode("utf-8"), scripted.headers)
        elif scripted.status != 200:
            body = error_body(scripted.error_type, scripted.error_message)
            if scripted.error_details is not None:
                body["error"]["details"] = scripted.error_details
            await reply.send_json(scripted.status, body, scripted.headers)
        else:
            await self._stream(scripted, reply)

    async def _stream(self, scripted: ScriptedReply, reply: HttpReply) -> None:
        await reply.start(200, {**SSE_HEADERS, "request-id": f"req_{len(self.requests)}", **scripted.headers})
        for item in self._items(scripted):
            if isinstance(item, PausePart):
                await self._pass(item.until) if item.until else await asyncio.sleep(item.seconds)
                continue
            for chunk in _chunks(item, scripted.byte_by_byte):
                await reply.write(chunk)
                if scripted.pace:
                    await asyncio.sleep(scripted.pace)
        if scripted.ending in ("cut", "reset"):
            reply.cut(reset=scripted.ending == "reset")
        else:
            await reply.finish()

    async def _pass(self, name: str) -> None:
        self._reached[name].set()
        await self._gates[name].wait()

    def _items(self, scripted: ScriptedReply) -> Iterator[bytes | PausePart]:
        usage = UsageOut(**scripted.usage)
        yield from opening_frames(f"msg_{len(self.requests)}", scripted.model, usage)
        index = 0
        for part in scripted.blocks:
            if isinstance(part, PausePart):
                yield part
            elif isinstance(part, FramePart):
                yield frame(part.event, part.data)
            elif isinstance(part, BytesPart):
                yield part.text.encode("latin-1")
            else:
                unfinished = isinstance(part, CallPart) and part.unfinished
                write = open_block_frames if unfinished else block_frames
                yield from write(index, self._block(part), scripted.piece)
                index += 1
        if scripted.ending == "complete":
            yield from closing_frames(_stop_reason(scripted), usage.output_tokens, scripted.stop_details)
        elif scripted.ending == "error":
            yield error_frame(scripted.error_type, scripted.error_message)

    def _block(self, part: TextPart | ThinkingPart | RedactedPart | CallPart) -> BlockOut:
        match part:
            case TextPart():
                return TextOut(part.text * part.repeat)
            case ThinkingPart():
                return ThinkingOut(part.thinking, part.signature)
            case RedactedPart():
                return RedactedOut(part.data)
            case CallPart():
                self._calls += 1
                arguments = json.dumps(part.input) if part.raw_input is None else part.raw_input
                return ToolUseOut(part.id or f"toolu_{self._calls}", part.name, arguments)


def _stop_reason(scripted: ScriptedReply) -> str | None:
    if scripted.stop_reason != "auto":
        return scripted.stop_reason
    return "tool_use" if any(isinstance(part, CallPart) for part in scripted.blocks) else "end_turn"


def _chunks(data: bytes, byte_by_byte: bool) -> Iterator[bytes]:
    if not byte_by_byte:
        yield data
        return
    for byte in data:
        yield bytes([byte])


async def _serve(script: list[Any]) -> None:
    """Runs until the process is told to end."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    async with ScriptedMessagesServer(script) as server:
        print(json.dumps({"port": server.port, "base_url": server.base_url, "token": server.token}), flush=True)
        await done.wait()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
