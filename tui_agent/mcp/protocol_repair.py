"""Repair of a server's answers before the SDK checks them: a bad entry is dropped, and the rest of the answer is used.

Over HTTP, a response whose next message is too long ends before it takes memory.
"""

import json
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx2
import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types import methods
from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.visible_text import escaped

from .stdio_transport import LONGEST_MESSAGE

_LISTS = ("tools", "prompts", "resources")
_OTHER_RESULTS = frozenset(
    (
        "supportedVersions",
        "capabilities",
        "serverInfo",
        "messages",
        "contents",
        "completion",
        "resourceTemplates",
        "task",
        "tasks",
    )
)
"""Fields of the results of other requests than lists and calls."""
_STRICT_VERSION = "2025-11-25"
"""The version with a handshake; the one without is more lenient about schemas."""
_RESULT_FIELDS = ("content", "structuredContent", "isError", "_meta", "resultType")
_TEXTS = ("name", "title", "description")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_LONGEST_NAME = 64
_block: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)

Note = Callable[[str], object]
"""Receives a message about an entry that is left out, with its name."""


def repaired(result: JsonObject, note: Note, outputs: dict[str, JsonObject]) -> JsonObject:
    """Return a server's result without the parts that break the protocol; `note` receives what is left out of a list.

    `outputs` gets the output schema of each tool.
    """
    if "_meta" in result and not is_object(result["_meta"]):
        result = {name: value for name, value in result.items() if name != "_meta"}
    for key in _LISTS:
        if key not in result or "content" in result:
            continue
        entries: object = result[key]
        if not is_array(entries) and entries is not None:
            note(f"{key}: not a list")
        given = entries if is_array(entries) else []
        kept = [found for place, one in enumerate(given) if (found := _entry(key, place, one, note, outputs))]
        cursor = result.get("nextCursor")
        return {**result, key: kept, "nextCursor": cursor if isinstance(cursor, str) else None}
    if "protocolVersion" in result:
        return _handshake(result)
    if is_array(messages := result.get("messages")):
        return {**result, "messages": [_prompt_message(one) for one in messages]}
    if is_array(contents := result.get("contents")):
        parts = [one for one in contents if is_object(one)]
        return {**result, "contents": [{**one, "uri": str(one.get("uri", "unnamed"))} for one in parts]}
    if "content" in result or _OTHER_RESULTS.isdisjoint(result):
        return _call_result(result)
    return result


def _entry(key: str, place: int, entry: object, note: Note, outputs: dict[str, JsonObject]) -> JsonObject | None:
    name = entry.get("name") if is_object(entry) else None
    shown = escaped(name[:_LONGEST_NAME]) if isinstance(name, str) else f"number {place + 1}"
    if not is_object(entry) or not isinstance(name, str) or not name.strip():
        note(f"{key[:-1]} {shown}: it has no name")
        return None
    if key == "tools":
        output = entry.get("outputSchema")
        if is_object(output) and output.get("type") == "object":
            # Checked here and dropped from the entry: the SDK would refuse a result that contradicts it.
            outputs[name] = output
        entry = _plain_tool(entry)
        kind = entry["inputSchema"]["type"]
        if kind != "object":
            note(f"{shown}: its arguments are not an object")
            return None
    try:
        methods.validate_server_result(f"{key}/list", _STRICT_VERSION, {key: [entry]})
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        where = ".".join(str(part) for part in first["loc"][2:])
        note(f"{shown}: it breaks the protocol: {where}: {first['msg']}"[:300])
        return None
    return entry


def _plain_tool(entry: JsonObject) -> JsonObject:
    """Return the fields of a tool that are used here."""
    schema = _plain_schema(entry.get("inputSchema"))
    plain = {name: entry[name] for name in _TEXTS if isinstance(entry.get(name), str)}
    plain["inputSchema"] = {"type": "object", **schema}
    if is_object(hints := entry.get("annotations")):
        plain["annotations"] = {name: hints[name] for name in _HINTS if isinstance(hints.get(name), bool)}
    return plain


def _plain_schema(schema: object) -> JsonObject:
    """Return a schema with the parts that languages without types write differently in the usual way."""
    plain = {name: part for name, part in schema.items() if part is not None} if is_object(schema) else {}
    kinds = plain.get("type")
    if is_array(kinds) and "object" in kinds:
        plain["type"] = "object"
    if plain.get("properties") == []:
        plain["properties"] = {}
    return plain


def _handshake(result: JsonObject) -> JsonObject:
    """Return the answer to `initialize`, with what a server leaves out or abbreviates."""
    can, info = result.get("capabilities"), result.get("serverInfo")
    claims = can if is_object(can) else {}
    offered = {name: one if is_object(one) else {} for name, one in claims.items() if one not in (None, False)}
    named = info if is_object(info) else {}
    known = {"name": str(named.get("name") or "unknown"), "version": str(named.get("version") or "")}
    return {**result, "capabilities": offered, "serverInfo": {**named, **known}}


def _call_result(result: JsonObject) -> JsonObject:
    content = result.get("content")
    if content is None:
        # A result without the usual fields is shown as it is.
        rest = {name: value for name, value in result.items() if name not in _RESULT_FIELDS}
        content = [json.dumps(rest, ensure_ascii=False)] if rest else []
    blocks = [_plain_block(block) for block in (content if is_array(content) else [content])]
    fixed = {**result, "content": blocks, "isError": str(result.get("isError")).lower() in ("true", "1")}
    structured = result.get("structuredContent")
    if structured is None:
        fixed.pop("structuredContent", None)
    elif not is_object(structured):
        fixed["structuredContent"] = {"value": structured}
    return fixed


def _prompt_message(message: object) -> object:
    """Return a message of a prompt, which has one block."""
    content: object = message.get("content") if is_object(message) else message
    blocks = [_plain_block(one) for one in (content if is_array(content) else [content])]
    if len(blocks) > 1 and all(one.get("type") == "text" for one in blocks):
        blocks = [_text("\n".join(str(one["text"]) for one in blocks))]
    role = message.get("role") if is_object(message) else None
    return {"role": role if role in ("user", "assistant") else "user", "content": blocks[0] if blocks else _text("")}


def _plain_block(block: object) -> JsonObject:
    """Return a block of content; in place of one that breaks the protocol a line of text."""
    if is_object(block):
        block = _usual_block(block)
    try:
        if not is_object(block) or "type" not in block:
            raise ValueError
        _block.validate_python(block, by_name=False)
    except ValueError:
        kind = block.get("type") if is_object(block) else None
        text = block.get("text") if is_object(block) else block
        about = f"[a block of type {kind!r} that breaks the protocol]"
        return _text(text if isinstance(text, str) else escaped(about[:200]))
    return block


def _usual_block(block: JsonObject) -> JsonObject:
    """Return a block that other interfaces write differently in the usual way, with what it leaves out."""
    kind, source, picture, resource = (block.get(name) for name in ("type", "source", "image_url", "resource"))
    if kind == "image" and is_object(source):
        block = {"type": kind, "data": source.get("data"), "mimeType": source.get("media_type")}
    if kind == "image_url":
        block = {"type": "image", "data": picture.get("url") if is_object(picture) else picture}
    if block.get("type") in ("image", "audio") and isinstance(block.get("data"), str):
        # The type is detected from the data.
        named: object = block.get("mimeType")
        block = {**block, "mimeType": named if isinstance(named, str) else "unknown"}
    if kind == "resource" and is_object(resource) and not isinstance(resource.get("uri"), str):
        block = {**block, "resource": {**resource, "uri": "unnamed"}}
    if kind == "resource_link" and not isinstance(block.get("name"), str):
        block = {**block, "name": "resource"}
    text: object = block.get("text")
    if "text" in block and not isinstance(text, str):
        block = {**block, "text": json.dumps(text, ensure_ascii=False)}
    return block


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


class RepairedStream:
    """The messages of a server, with repaired results."""

    def __init__(self, stream: Any, repair: Callable[[JsonObject], JsonObject]) -> None:
        self._stream = stream
        self._repair = repair

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *details: Any) -> Any:
        return await self._stream.__aexit__(*details)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._repaired(await self._stream.__anext__())

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return self._repaired(await self._stream.receive())

    def _repaired(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        result: object = getattr(getattr(item, "message", None), "result", None)
        if isinstance(item, Exception) or not is_object(result):
            return item
        message = item.message.model_copy(update={"result": self._repair(result)})
        return SessionMessage(message, item.metadata)


@asynccontextmanager
async def with_repair(transport: Any, repair: Callable[[JsonObject], JsonObject]) -> AsyncGenerator[Any]:
    """Yield the streams of a transport; what comes from the server is repaired."""
    async with transport as (read, write):
        yield RepairedStream(read, repair), write


TOO_LONG = f"it sent a message of more than {LONGEST_MESSAGE // 1024**2} MiB"
ENCODED = "it sent a compressed answer, which it was asked not to do"


class LimitedTransport(httpx2.AsyncHTTPTransport):
    """Counts the bytes of each message: of a whole response, or of one event of a stream of events."""

    def __init__(self, verify: ssl.SSLContext, fail: Callable[[str], object]) -> None:
        """Store the function that is called with the reason when a response is ended."""
        super().__init__(verify=verify)
        self._fail = fail

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the body of its response is limited."""
        # The size of a compressed message is known only once it takes the memory.
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            self._fail(ENCODED)
            raise httpx2.ReadError(ENCODED, request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_events = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        response.stream = _LimitedStream(response.stream, request, self._fail, is_events=is_events)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(
        self, stream: httpx2.AsyncByteStream, request: httpx2.Request, fail: Callable[[str], object], *, is_events: bool
    ) -> None:
        self._stream = stream
        self._request = request
        self._fail = fail
        self._is_events = is_events

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size, end = 0, b""
        async for chunk in self._stream:
            size += len(chunk)
            if self._is_events:
                # An empty line ends an event; it may come in two chunks.
                seen = (end + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                end = chunk[-3:]
                if (place := seen.rfind(b"\n\n")) >= 0:
                    size = len(seen) - place
            if size > LONGEST_MESSAGE:
                self._fail(TOO_LONG)
                raise httpx2.ReadError(TOO_LONG, request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
