"""A Messages API on loopback that plays a script, including faults, and refuses invalid requests as the real one does.

In a test:

```python
async with ScriptedMessagesServer([{"blocks": [{"type": "text", "text": "Hello"}]}]) as server:
    provider = AnthropicProvider("any-model", auth_token=server.token, base_url=server.base_url)
```

In another process: `python -m tests.support.messages_server SCRIPT.json`, where the file contains a list of replies. It
prints one JSON line with address and token, and serves until it is terminated. `GET /control/requests` answers with
all requests so far.
"""

import asyncio
import json
import secrets
import signal
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from tests.support.wire_rules import problems_of, read_body
from tui_agent.protocol.messages import JsonObject
from tui_agent.providers.demo.demo_server import (
    SSE_HEADERS,
    block_frames,
    closing_frames,
    error_body,
    frame,
    opening_frames,
)
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest, LoopbackServer


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TextPart(_Part):
    type: Literal["text"] = "text"
    text: str
    repeat: int = 1
    """Times to repeat the text within one block."""


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
    """Id of the call; None: a new one, unique in the server."""
    raw_input: str | None = None
    """Argument text sent instead of `input`, such as broken JSON."""
    unfinished: bool = False
    """True if the block never ends."""


class PausePart(_Part):
    """Pause of the stream until `release(until)`, or for a number of seconds (for servers in another process)."""

    type: Literal["pause"] = "pause"
    until: str | None = None
    seconds: float = 0.0


class FramePart(_Part):
    """Any event, sent unchanged."""

    type: Literal["frame"] = "frame"
    event: str
    data: dict[str, Any] = Field(default_factory=dict)


class BytesPart(_Part):
    """Bytes that are not an event; sent as Latin-1."""

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
    """`auto`: `tool_use` if there are calls, otherwise `end_turn`."""
    stop_details: dict[str, Any] | None = None
    model: str = "scripted-model"
    usage: dict[str, int] = Field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 20})
    piece: int | None = None
    """Characters in a delta; None: about a word."""
    pace: float = 0.0
    """Seconds between chunks, which are frames or single bytes."""
    byte_by_byte: bool = False
    """True if every byte of the body is a chunk."""
    ending: Literal["complete", "no_message_stop", "cut", "reset", "error"] = "complete"
    """End of the stream; all kinds but `complete` leave out the closing events. `error` sends an error event."""
    status: int = 200
    """HTTP status; any other than 200 answers with an error of `error_type` and `error_message`."""
    error_type: str = "api_error"
    error_message: str = "scripted error"
    error_details: dict[str, Any] | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    raw_body: str | None = None
    """Raw body, sent with `status` and `headers`."""
    wait_for: str | None = None
    """Name to `release` before the server answers."""
    when: str | None = None
    """Text that a request must contain to get this reply; replies without it are taken in order."""


_SCRIPT: TypeAdapter[list[ScriptedReply]] = TypeAdapter(list[ScriptedReply])


@dataclass(slots=True)
class RecordedRequest:
    """Request of the client."""

    body: Any
    headers: Mapping[str, str]
    at: float
    """Time of arrival on the monotonic clock, in seconds."""
    peer: int = 0
    """Port of the client: the same for requests on one connection."""
    problems: list[str] = field(default_factory=list)
    """Faults for which the API would refuse the request."""
    answered_at: float | None = None
    """Time when the whole answer was sent, on the same clock."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set if the client disconnected before its answer was complete."""

    def to_json(self) -> dict[str, Any]:
        times = {"at": self.at, "answered_at": self.answered_at}
        return {"body": self.body, "headers": dict(self.headers), "problems": self.problems, **times}


class ScriptedMessagesServer(LoopbackServer):
    """Server that plays a list of replies, one for each request."""

    def __init__(self, script: Iterable[ScriptedReply | Mapping[str, Any]] = ()) -> None:
        self.token = secrets.token_hex(16)
        """Token that clients must send; requests without it get status 401."""
        super().__init__(self._answer_request)
        self.requests: list[RecordedRequest] = []
        self.models: list[str] | None = None
        """Models that the server lists; None: it lists none, as many servers do."""
        self.listings = 0
        """Requests for the list of models."""
        self._script: list[ScriptedReply] = []
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._reached: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._arrived = asyncio.Condition()
        self._calls = 0
        self._resuming = False
        self.add(*script)

    @property
    def problems(self) -> list[str]:
        """Everything the API would have refused so far, with the number of the request."""
        return [f"request {n}: {text}" for n, request in enumerate(self.requests) for text in request.problems]

    @property
    def left(self) -> int:
        """Replies that no request has used yet."""
        return len(self._script)

    def add(self, *replies: ScriptedReply | Mapping[str, Any]) -> None:
        """Append replies to the script."""
        self._script += _SCRIPT.validate_python(list(replies))

    def release(self, name: str) -> None:
        """Release everything that waits for `name`, now or later."""
        self._gates[name].set()

    async def reached(self, name: str) -> None:
        """Wait until something waits for `name`."""
        await self._reached[name].wait()

    def hold_models(self) -> None:
        """Let requests for the list of models wait for `release("models")`."""
        self._gates["models"].clear()

    async def asked(self, count: int) -> None:
        """Wait until `count` requests have arrived."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    def problems_of(self, body: Any) -> list[str]:
        """Return the faults for which the API would refuse a request."""
        return problems_of(body, resuming=self._resuming)

    def error_body(self, kind: str, message: str) -> dict[str, Any]:
        """Return the body of an error."""
        return error_body(kind, message)

    async def _answer_request(self, request: HttpRequest, reply: HttpReply) -> None:
        if request.target == "/control/requests":
            # A test's question to a server in another process.
            await reply.send_json(200, {"requests": [one.to_json() for one in self.requests]})
        elif self.token not in (request.headers.get("x-api-key"), _bearer(request)):
            await reply.send_json(401, error_body("authentication_error", "invalid x-api-key"))
        elif request.method == "GET" and request.target.partition("?")[0] == "/v1/models":
            await self._list_models(reply)
        elif request.method != "POST" or request.target != "/v1/messages":
            await reply.send_json(404, error_body("not_found_error", request.target))
        else:
            await self._answer_scripted(request, reply)

    async def _list_models(self, reply: HttpReply) -> None:
        self.listings += 1
        if "models" in self._gates:
            await self._pass("models")
        if self.models is None:
            await reply.send_json(404, error_body("not_found_error", "no models here"))
        else:
            data = [{"type": "model", "id": name, "display_name": name} for name in self.models]
            await reply.send_json(200, {"data": data, "has_more": False, "first_id": None, "last_id": None})

    async def _answer_scripted(self, request: HttpRequest, reply: HttpReply) -> None:
        record = await self._record(request)
        if record.problems:
            await reply.send_json(400, self.error_body("invalid_request_error", "; ".join(record.problems)))
            return
        scripted = self._next(request.body.decode("utf-8"))
        if scripted is None:
            await reply.send_json(400, self.error_body("invalid_request_error", "the script is used up"))
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
            record.problems = self.problems_of(record.body)
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
            body = self.error_body(scripted.error_type, scripted.error_message)
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
            _cut(reply, reset=scripted.ending == "reset")
        else:
            await reply.finish()

    async def _pass(self, name: str) -> None:
        self._reached[name].set()
        await self._gates[name].wait()

    def _items(self, scripted: ScriptedReply) -> Iterator[bytes | PausePart]:
        yield from opening_frames(f"msg_{len(self.requests)}", scripted.model, scripted.usage)
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
                yield from block_frames(index, self._block(part), scripted.piece, ends=not unfinished)
                index += 1
        if scripted.ending == "complete":
            yield from closing_frames(
                _stop_reason(scripted), scripted.usage.get("output_tokens", 0), scripted.stop_details
            )
        elif scripted.ending == "error":
            yield frame("error", error_body(scripted.error_type, scripted.error_message))

    def _block(self, part: TextPart | ThinkingPart | RedactedPart | CallPart) -> JsonObject:
        match part:
            case TextPart():
                return {"type": "text", "text": part.text * part.repeat}
            case ThinkingPart() | RedactedPart():
                return part.model_dump()
            case CallPart():
                self._calls += 1
                arguments = json.dumps(part.input) if part.raw_input is None else part.raw_input
                call_id = part.id or f"toolu_{self._calls}"
                return {"type": "tool_use", "id": call_id, "name": part.name, "input": arguments}


def _cut(reply: HttpReply, *, reset: bool) -> None:
    """Drop the connection in the middle of the answer; with `reset` the peer sees a reset instead of an end."""
    if reset:
        raw: socket.socket = reply.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        reply.writer.transport.abort()
    else:
        reply.writer.close()


def _bearer(request: HttpRequest) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


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
    """Serve until the process is terminated."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, done.set)
    async with ScriptedMessagesServer(script) as server:
        print(json.dumps({"base_url": server.base_url, "token": server.token}), flush=True)
        await done.wait()


if __name__ == "__main__":
    asyncio.run(_serve(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
