"""The offline model as a server of the real Messages API on loopback.

So `--demo` runs the same code as a real model, down to the server-sent events of an answer.
"""

import asyncio
import hashlib
import json
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from tui_agent.protocol.messages import JsonObject, is_array, is_object

from .demo_policy import next_turn
from .demo_transcript import read_request
from .demo_turn import DemoTurn
from .guided_tour import DemoWorkspace
from .loopback_http import HttpReply, HttpRequest, LoopbackServer
from .sample_project import copy_sample_project, sample_test_command


@dataclass(frozen=True, slots=True)
class TextOut:
    """A block of text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingOut:
    """A block of reasoning."""

    thinking: str
    signature: str = "c2lnbmF0dXJl"


@dataclass(frozen=True, slots=True)
class RedactedOut:
    """An encrypted block of reasoning."""

    data: str


@dataclass(frozen=True, slots=True)
class ToolUseOut:
    """A tool call; the argument text is streamed unchanged, even if it is not valid JSON."""

    call_id: str
    name: str
    arguments: str


BlockOut: TypeAlias = TextOut | ThinkingOut | RedactedOut | ToolUseOut


@dataclass(frozen=True, slots=True)
class UsageOut:
    """Token counts, as the API reports them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0

    def opening(self) -> JsonObject:
        """Return the counts known at the start of the answer."""
        return {
            "input_tokens": self.input_tokens,
            "cache_read_input_tokens": self.cache_read_input_tokens,
            "cache_creation_input_tokens": self.cache_creation_input_tokens,
            "output_tokens": 1,
        }


SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
"""Headers of a streamed answer."""

_TOKEN = re.compile(r"\s*\S{1,12}|\s+")
"""Piece of text for one frame if no size is given: about a word."""


def frame(event: str, data: JsonObject) -> bytes:
    """Return the bytes of one event."""
    body = json.dumps({"type": event, **data}, ensure_ascii=False)
    return f"event: {event}\ndata: {body}\n\n".encode("utf-8", "replace")


def opening_frames(message_id: str, model: str, usage: UsageOut) -> Iterator[bytes]:
    """Yield the frames before the first block."""
    message: JsonObject = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage.opening(),
    }
    yield frame("message_start", {"message": message})
    yield frame("ping", {})


def block_frames(index: int, block: BlockOut, piece: int | None = None) -> Iterator[bytes]:
    """Yield the frames of one block.

    Args:
        piece: characters per delta; None: about a word.
    """
    yield from open_block_frames(index, block, piece)
    yield frame("content_block_stop", {"index": index})


def open_block_frames(index: int, block: BlockOut, piece: int | None = None) -> Iterator[bytes]:
    """Yield the frames of one block except its last."""
    match block:
        case TextOut(text):
            yield _start(index, {"type": "text", "text": ""})
            for part in pieces(text, piece):
                yield _delta(index, {"type": "text_delta", "text": part})
        case ThinkingOut(thinking, signature):
            yield _start(index, {"type": "thinking", "thinking": "", "signature": ""})
            for part in pieces(thinking, piece):
                yield _delta(index, {"type": "thinking_delta", "thinking": part})
            yield _delta(index, {"type": "signature_delta", "signature": signature})
        case RedactedOut(data):
            yield _start(index, {"type": "redacted_thinking", "data": data})
        case ToolUseOut(call_id, name, arguments):
            yield _start(index, {"type": "tool_use", "id": call_id, "name": name, "input": {}})
            for part in ["", *pieces(arguments, piece)]:
                yield _delta(index, {"type": "input_json_delta", "partial_json": part})


def closing_frames(
    stop_reason: str | None, output_tokens: int, stop_details: JsonObject | None = None
) -> Iterator[bytes]:
    """Yield the frames after the last block."""
    delta: JsonObject = {"stop_reason": stop_reason, "stop_sequence": None}
    if stop_details is not None:
        delta["stop_details"] = stop_details
    yield frame("message_delta", {"delta": delta, "usage": {"output_tokens": output_tokens}})
    yield frame("message_stop", {})


def error_body(kind: str, message: str) -> JsonObject:
    """Return the body of the API's answer to a failed request."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_frame(kind: str, message: str) -> bytes:
    """Return the frame of an error in the middle of a stream."""
    return frame("error", {"error": {"type": kind, "message": message}})


def pieces(text: str, size: int | None) -> list[str]:
    """Split `text` into pieces for streaming."""
    if size is None:
        return _TOKEN.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _start(index: int, block: JsonObject) -> bytes:
    return frame("content_block_start", {"index": index, "content_block": block})


def _delta(index: int, delta: JsonObject) -> bytes:
    return frame("content_block_delta", {"index": index, "delta": delta})


DEMO_PACE = 0.012
"""Seconds per word, about the speed of a fast model."""

_WORDS_TO_THINK = 20
"""Delay before the first word, as a number of words."""
_LETTERS_PER_TOKEN = 4


class DemoServer:
    """Server of the offline model while its context is open; closing it removes everything, files included.

    It listens on 127.0.0.1 only and refuses requests without its random token.
    """

    def __init__(self, *, pace: float = DEMO_PACE, sample_dir: Path | None = None) -> None:
        """Store the settings; start nothing.

        Args:
            pace: seconds between two words; 0 for as fast as possible.
            sample_dir: directory of the guided tour; None: a temporary directory, removed at the end.
        """
        self.token = secrets.token_hex(24)
        """Credential for requests, the `auth_token` of the provider."""
        self._pace = pace
        self._given_dir = sample_dir
        self._workshop: DemoWorkspace | None = None
        self._server = LoopbackServer(self._handle)

    def __repr__(self) -> str:
        return "DemoServer()"

    @property
    def base_url(self) -> str:
        """Address for the provider; available only while the context is open."""
        return self._server.base_url

    @property
    def sample_dir(self) -> Path:
        """Directory of the guided tour, empty until the tour begins; available only while the context is open."""
        return Path(self._place.directory)

    @property
    def rules(self) -> tuple[tuple[Literal["allow"], str], ...]:
        """Permission rule for the guided tour: it allows the exact command that runs the sample's tests."""
        return (("allow", f"bash({self._place.test_command})"),)

    @property
    def _place(self) -> DemoWorkspace:
        if self._workshop is None:
            raise RuntimeError("the demo is not running")
        return self._workshop

    async def __aenter__(self) -> Self:
        directory = await asyncio.to_thread(self._make_sample_dir)
        self._workshop = DemoWorkspace(str(directory), sample_test_command(directory))
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._server.__aexit__(kind, error, trace)
        finally:
            if self._given_dir is None:
                await asyncio.to_thread(shutil.rmtree, self.sample_dir, ignore_errors=True)

    def _make_sample_dir(self) -> Path:
        """Return the directory of the tour, a private one unless it was given. Blocks."""
        given = self._given_dir
        return (given or Path(tempfile.mkdtemp(prefix="tour-"))).resolve()

    async def _handle(self, request: HttpRequest, reply: HttpReply) -> None:
        if not self._may_ask(request):
            await reply.send_json(401, error_body("authentication_error", "invalid token"))
        elif request.method != "POST" or request.target.partition("?")[0] != "/v1/messages":
            await reply.send_json(404, error_body("not_found_error", "the demo only serves POST /v1/messages"))
        elif (body := _read_body(request.body)) is None:
            words = "the demo takes streaming requests with at least one message"
            await reply.send_json(400, error_body("invalid_request_error", words))
        else:
            await self._answer(body, request.body, reply)

    def _may_ask(self, request: HttpRequest) -> bool:
        shown = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get("x-api-key", "")
        return secrets.compare_digest(shown.encode(), self.token.encode())

    async def _answer(self, body: JsonObject, raw: bytes, reply: HttpReply) -> None:
        turn = await asyncio.to_thread(lambda: next_turn(read_request(body), self._place))
        if turn.fresh_sample:
            try:
                await asyncio.to_thread(copy_sample_project, self.sample_dir)
            except OSError as error:
                await reply.send_json(400, error_body("invalid_request_error", f"no sample project: {error}"))
                return
        await reply.start(200, {**SSE_HEADERS, "request-id": f"req_demo_{_digest(raw)}"})
        await asyncio.sleep(self._pace * _WORDS_TO_THINK)
        for one in _frames(turn, str(body.get("model", "")), raw):
            await reply.write(one)
            if self._pace:
                await asyncio.sleep(self._pace)
        await reply.finish()


def _read_body(raw: bytes) -> JsonObject | None:
    """Parse a request; return None if the Messages API would refuse it, as far as the demo checks that."""
    try:
        body: object = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not is_object(body) or body.get("stream") is not True:
        return None
    messages: object = body.get("messages")
    return body if is_array(messages) and messages else None


def _frames(turn: DemoTurn, model: str, raw: bytes) -> Iterator[bytes]:
    """Yield the frames of the whole answer. Its ids derive from the request, so they are reproducible and unique."""
    blocks = list(_blocks(turn, raw))
    usage = UsageOut(input_tokens=len(raw) // _LETTERS_PER_TOKEN, output_tokens=sum(map(_words, blocks)))
    yield from opening_frames(f"msg_demo_{_digest(raw)}", model, usage)
    for index, block in enumerate(blocks):
        yield from block_frames(index, block)
    yield from closing_frames("tool_use" if turn.calls else "end_turn", usage.output_tokens)


def _blocks(turn: DemoTurn, raw: bytes) -> Iterator[BlockOut]:
    if turn.thinking:
        yield ThinkingOut(turn.thinking)
    if turn.text:
        yield TextOut(turn.text)
    for number, call in enumerate(turn.calls):
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        yield ToolUseOut(f"toolu_demo_{_digest(raw, number)}", call.name, arguments)


def _words(block: BlockOut) -> int:
    """Return the number of deltas of a block, which the demo counts as tokens."""
    match block:
        case TextOut(text) | ThinkingOut(text) | ToolUseOut(arguments=text):
            return len(pieces(text, None))
        case _:
            return 0


def _digest(raw: bytes, number: int = 0) -> str:
    return hashlib.sha256(raw + bytes([number])).hexdigest()[:16]
