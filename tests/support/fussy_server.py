"""A local model server that refuses fields of the Messages API, or prompts above its window, in its own words."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.providers.demo.demo_server import (
    SSE_HEADERS,
    block_frames,
    closing_frames,
    error_body,
    opening_frames,
)
from tui_agent.providers.demo.loopback_http import Handler, HttpReply, HttpRequest, LoopbackServer

CHARACTERS_PER_TOKEN = 4


def has_field(body: Any, headers: Mapping[str, str], name: str) -> bool:
    """Return True if a request has what `name` stands for, as in `tui_agent.providers.refused_fields`."""
    text = json.dumps(body)
    match name:
        case "anthropic-version":
            return headers.get("anthropic-version") != "2023-06-01"
        case "anthropic-beta":
            return name in headers
        case "system_blocks":
            return isinstance(body.get("system"), list)
        case "cache_lifetime":
            return '"ttl"' in text
        case "cache_control" | "is_error":
            return f'"{name}"' in text
        case _:
            return name in body


@dataclass(kw_only=True)
class FussyServer(LoopbackServer):
    """Answers every acceptable request with `answer`; a dict of refusals maps fields to error bodies."""

    handler: Handler = field(init=False)
    refusals: Mapping[str, Any] = field(default_factory=dict)
    """Error bodies by field. A text is sent as the message of an error of the API."""
    at_once: bool = False
    """True to refuse all fields in one answer, joined by semicolons."""
    status: int = 400
    refuses: Callable[[Any], tuple[int, Any] | None] = lambda _: None
    """Returns status and body of the refusal of a request; None for a good one."""
    window: int | None = None
    """Tokens of prompt and answer above which a request is refused; None: any."""
    answer: Callable[[Any], str] = lambda _: "Hello."
    """Returns the text of the answer to a request."""
    frames: Sequence[bytes] | None = None
    """Blocks of the answer as frames, in place of the text."""
    stop_reason: Callable[[Any], str] = lambda _: "end_turn"
    """Returns the stop reason of the answer to a request."""
    counts_tokens: bool = False
    pages: Mapping[str, Any] = field(default_factory=dict)
    """Answers to GET requests by path; a text is sent as it is."""
    bodies: list[Any] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    refused: int = 0
    largest: int = 0
    """Tokens of the largest request that was accepted."""

    def __post_init__(self) -> None:
        self.handler = self._answer_request

    async def _answer_request(self, request: HttpRequest, reply: HttpReply) -> None:
        self.headers.append(dict(request.headers))
        if request.method == "GET":
            page = self.pages.get(request.target)
            if page is None:
                await reply.send_json(404, {"detail": "Not Found"})
            elif isinstance(page, str):
                await reply.send(200, page.encode())
            else:
                await reply.send_json(200, page)
            return
        body = json.loads(request.body)
        self.bodies.append(body)
        size = len(request.body) // CHARACTERS_PER_TOKEN
        if request.target.endswith("/count_tokens"):
            known = self.counts_tokens
            await reply.send_json(200 if known else 404, {"input_tokens": size} if known else {"detail": "Not Found"})
        elif named := [name for name in self.refusals if has_field(body, request.headers, name)]:
            await self._refuse(named, reply)
        elif (refusal := self.refuses(body)) is not None:
            self.refused += 1
            await reply.send_json(*refusal)
        elif self.window is not None and size + body["max_tokens"] > self.window:
            self.refused += 1
            words = f"This model's maximum context length is {self.window} tokens. However, you requested {size} tokens"
            await reply.send_json(400, {"object": "error", "message": words, "type": "BadRequestError", "code": 400})
        else:
            self.largest = max(self.largest, size)
            await self._stream(body, size, reply)

    async def _refuse(self, named: Sequence[str], reply: HttpReply) -> None:
        self.refused += 1
        bodies = [self.refusals[name] for name in named]
        if self.at_once:
            await reply.send_json(self.status, error_body("invalid_request_error", "; ".join(bodies)))
        elif isinstance(bodies[0], str):
            await reply.send_json(self.status, error_body("invalid_request_error", bodies[0]))
        else:
            await reply.send_json(self.status, bodies[0])

    async def _stream(self, body: Any, size: int, reply: HttpReply) -> None:
        await reply.start(200, SSE_HEADERS)
        text = self.answer(body)
        blocks = list(block_frames(0, {"type": "text", "text": text})) if self.frames is None else self.frames
        for frame in (*opening_frames("msg_1", body["model"], {"input_tokens": size}), *blocks):
            await reply.write(frame)
        for frame in closing_frames(self.stop_reason(body), max(len(text) // CHARACTERS_PER_TOKEN, 1)):
            await reply.write(frame)
        await reply.finish()
