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
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.protocol.messages import JsonObject, is_array, is_object

from .demo_policy import next_turn
from .demo_task import DemoTurn, read_request
from .guided_tour import DemoWorkspace, copy_sample_project, sample_test_command
from .loopback_http import HttpReply, HttpRequest, LoopbackServer

SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}

_TOKEN = re.compile(r"\s*\S{1,12}|\s+")
"""Piece of text for one frame if no size is given: about a word."""

_STREAMED = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
    "tool_use": ("input", "input_json_delta", "partial_json"),
}
"""Field of a block that comes in pieces, by its type; type and field of the pieces."""


def frame(event: str, data: JsonObject) -> bytes:
    """Return the bytes of one event."""
    body = json.dumps({"type": event, **data}, ensure_ascii=False)
    return f"event: {event}\ndata: {body}\n\n".encode("utf-8", "replace")


def opening_frames(message_id: str, model: str, usage: Mapping[str, int]) -> Iterator[bytes]:
    """Yield the frames before the first block, with the counts known at the start of the answer."""
    nothing = {"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message: JsonObject = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**nothing, **usage, "output_tokens": 1},
    }
    yield frame("message_start", {"message": message})
    yield frame("ping", {})


def block_frames(index: int, block: JsonObject, piece: int | None = None, *, ends: bool = True) -> Iterator[bytes]:
    """Yield the frames of one block, `piece` characters a delta; None: about a word.

    The block is as in a whole message, but the `input` of a call is its text, which may be invalid JSON.
    """
    field, delta, name = _STREAMED.get(block["type"], ("", "", ""))
    is_call = block["type"] == "tool_use"
    content: JsonObject = {**block, **{one: "" for one in (field, "signature") if one in block}}
    if is_call:
        content["input"] = {}
    yield frame("content_block_start", {"index": index, "content_block": content})
    for part in ([""] if is_call else []) + pieces(block.get(field, ""), piece):
        yield _delta(index, {"type": delta, name: part})
    if "signature" in block:
        yield _delta(index, {"type": "signature_delta", "signature": block["signature"]})
    if ends:
        yield frame("content_block_stop", {"index": index})


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


def pieces(text: str, size: int | None) -> list[str]:
    """Split `text` into pieces of `size` characters for streaming; None: into words. Joined they equal the text."""
    if size is None:
        return _TOKEN.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def _delta(index: int, delta: JsonObject) -> bytes:
    return frame("content_block_delta", {"index": index, "delta": delta})


DEMO_PACE = 0.012
"""Seconds per word, about the speed of a fast model."""

_WORDS_TO_THINK = 20
"""Delay before the first word, as a number of words."""
_LETTERS_PER_TOKEN = 4
_SIGNATURE = "c2lnbmF0dXJl"


@asynccontextmanager
async def demo_server(*, pace: float = DEMO_PACE, sample_dir: Path | None = None) -> AsyncGenerator["DemoServer"]:
    """Serve the offline model, on 127.0.0.1 only, and at the end remove everything, files included.

    Args:
        pace: seconds between two words; 0 for as fast as possible.
        sample_dir: directory of the guided tour; None: a temporary directory, removed at the end.
    """

    def directory() -> Path:
        return (sample_dir or Path(tempfile.mkdtemp(prefix="tour-"))).resolve()

    place = await asyncio.to_thread(directory)
    try:
        demo = DemoServer(pace, DemoWorkspace(str(place), sample_test_command(place)), secrets.token_hex(24))
        async with LoopbackServer(demo.handle) as server:
            demo.base_url = server.base_url
            yield demo
    finally:
        if sample_dir is None:
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


@dataclass(slots=True, repr=False)
class DemoServer:
    """The offline model while it is served; it refuses requests without its random token."""

    pace: float
    workspace: DemoWorkspace
    token: str
    """Credential for requests, the `auth_token` of the provider."""
    base_url: str = ""

    @property
    def sample_dir(self) -> Path:
        """Directory of the guided tour, empty until the tour begins."""
        return Path(self.workspace.directory)

    @property
    def rules(self) -> tuple[tuple[Literal["allow"], str], ...]:
        """Permission rule for the guided tour: it allows the exact command that runs the sample's tests."""
        return (("allow", f"bash({self.workspace.test_command})"),)

    async def handle(self, request: HttpRequest, reply: HttpReply) -> None:
        """Answer one request."""
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
        # In constant time, so that a guess tells nothing about the token.
        return secrets.compare_digest(shown.encode(), self.token.encode())

    async def _answer(self, body: JsonObject, raw: bytes, reply: HttpReply) -> None:
        turn = await asyncio.to_thread(lambda: next_turn(read_request(body), self.workspace))
        if turn.fresh_sample:
            try:
                await asyncio.to_thread(copy_sample_project, self.sample_dir)
            except OSError as error:
                await reply.send_json(400, error_body("invalid_request_error", f"no sample project: {error}"))
                return
        await reply.start(200, {**SSE_HEADERS, "request-id": f"req_demo_{_digest(raw)}"})
        await asyncio.sleep(self.pace * _WORDS_TO_THINK)
        for one in _frames(turn, str(body.get("model", "")), raw):
            await reply.write(one)
            if self.pace:
                await asyncio.sleep(self.pace)
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
    words = sum(len(pieces(block[_STREAMED[block["type"]][0]], None)) for block in blocks)
    yield from opening_frames(f"msg_demo_{_digest(raw)}", model, {"input_tokens": len(raw) // _LETTERS_PER_TOKEN})
    for index, block in enumerate(blocks):
        yield from block_frames(index, block)
    yield from closing_frames("tool_use" if turn.calls else "end_turn", words)


def _blocks(turn: DemoTurn, raw: bytes) -> Iterator[JsonObject]:
    if turn.thinking:
        yield {"type": "thinking", "thinking": turn.thinking, "signature": _SIGNATURE}
    if turn.text:
        yield {"type": "text", "text": turn.text}
    for number, call in enumerate(turn.calls):
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        yield {"type": "tool_use", "id": f"toolu_demo_{_digest(raw, number)}", "name": call.name, "input": arguments}


def _digest(raw: bytes, number: int = 0) -> str:
    return hashlib.sha256(raw + bytes([number])).hexdigest()[:16]
