"""The Messages API as clouds have it, on loopback: other addresses, credentials, and for Bedrock frames of AWS."""

import base64
import json
import re
from binascii import crc32
from collections.abc import Iterator
from struct import pack
from typing import Any
from urllib.parse import unquote

from tests.support.messages_server import PausePart, ScriptedMessagesServer, ScriptedReply
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest

AWS_STREAM = {"content-type": "application/vnd.amazon.eventstream"}
_BEDROCK = re.compile(r"/model/([^/]+)/invoke-with-response-stream")
_VERTEX = re.compile(r"/v1/projects/([^/]+)/locations/([^/]+)/publishers/anthropic/models/([^/:]+):streamRawPredict")


class ScriptedCloudServer(ScriptedMessagesServer):
    """Server of Bedrock, Vertex, Foundry, and of Google's tokens."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked_for: list[str] = []
        """Addresses of the requests, without percent-encoding."""
        self.tokens = 0
        """Requests for a token."""
        self._in_frames = False

    def problems_of(self, body: Any) -> list[str]:
        named = [name for name in ("model", "stream") if name in body] if self._in_frames else []
        whole = {"model": "of-the-address", **body, "stream": True}
        if self._in_frames:
            whole.pop("anthropic_beta", None)
        missing = [] if self._is_foundry or whole.pop("anthropic_version", None) else ["no anthropic_version"]
        return [*super().problems_of(whole), *missing, *(f"{name} is in the address" for name in named)]

    async def _answer_request(self, request: HttpRequest, reply: HttpReply) -> None:
        target = unquote(request.target)
        if target == "/token":
            self.tokens += 1
            answer = {"access_token": "ya29.of-google", "expires_in": 3600, "token_type": "Bearer"}
            await reply.send_json(200, answer)
            return
        self.asked_for.append(target)
        self._in_frames = _BEDROCK.fullmatch(target) is not None
        self._is_foundry = target == "/v1/messages"
        if self._in_frames or self._is_foundry or _VERTEX.fullmatch(target):
            await self._answer_scripted(request, reply)
        else:
            await reply.send_json(404, {"message": f"no {target}"})

    def _items(self, scripted: ScriptedReply) -> Iterator[bytes | PausePart]:
        for item in super()._items(scripted):
            if isinstance(item, PausePart) or not self._in_frames:
                yield item
            else:
                yield event_frame(item.partition(b"data: ")[2].strip())


def event_frame(event: bytes) -> bytes:
    """Return an event in a frame of AWS."""
    payload = json.dumps({"bytes": base64.b64encode(event).decode()}).encode()
    headers = {":message-type": "event", ":event-type": "chunk", ":content-type": "application/json"}
    return _frame(headers, payload)


def exception_frame(kind: str, message: str) -> bytes:
    """Return the frame of an error in the middle of a stream."""
    headers = {":message-type": "exception", ":exception-type": kind, ":content-type": "application/json"}
    return _frame(headers, json.dumps({"message": message}).encode())


def _frame(headers: dict[str, str], payload: bytes) -> bytes:
    head = b"".join(
        pack("!B", len(name)) + name.encode() + pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = pack("!II", len(head) + len(payload) + 16, len(head))
    front = prelude + pack("!I", crc32(prelude)) + head + payload
    return front + pack("!I", crc32(front))
