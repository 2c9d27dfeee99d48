"""JSON-RPC on file descriptors, one message a line, checked before the protocol's library sees it.

The library expects well-formed messages and keeps everything that it has not sent. Here a malformed line gets an error
by its code, and neither a client that floods nor one that never reads takes more than a bounded amount of memory.
"""

import json
import logging
import re
from collections.abc import Callable
from typing import Any

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.pipes import LineReader, PipeWriter
from tui_agent.protocol.visible_text import escaped

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
NOT_FOUND, NO_KEY = -32002, -32000
"""Codes of the protocol itself: no such session, a login is missing."""
LINES_AHEAD = 8
"""Lines read ahead; each has at most `pipes.LONGEST_LINE` bytes."""
MOST_REQUESTS = 64
"""Requests of the client that may be unanswered at the same time."""

_HALF = re.compile("[\ud800-\udfff]")
"""Half a character, which JSON can name, but UTF-8 cannot write."""

_LOG = logging.getLogger(__name__)


class RpcTransport:
    """Messages from and to one client; implements the `Transport` of the protocol's library."""

    def __init__(self, stdin: int, stdout: int) -> None:
        """Store the file descriptors; nothing is read before `start`."""
        self._lines = LineReader(stdin, ahead=LINES_AHEAD)
        self._output = PipeWriter(stdout)
        self._open: set[int | str | None] = set()
        """Ids of the client's requests without an answer."""

    def start(self) -> None:
        """Begin to read and write."""
        self._lines.start()
        self._output.start()

    async def receive(self) -> JsonObject | None:
        """Return the next well-formed message; None once the client is gone.

        Reads no more while the client does not read its answers.
        """
        while True:
            line = await self._lines.next()
            if line is None:
                return None
            await self._output.room()
            if self._output.closed_by_reader.is_set():
                return None
            if not line.strip():
                continue
            # Its end is not stored, so that no id is known to answer to.
            if line.too_long:
                self._refuse(None, PARSE_ERROR, f"a message is longer than {len(line):,} bytes")
                continue
            message = self._parse(line)
            if message is not None:
                return message

    async def send(self, message: JsonObject) -> None:
        """Queue an answer or a request; never waits."""
        if "method" not in message:
            self._open.discard(message.get("id"))
        self._put(message)

    def notify(self, method: str, params: JsonObject) -> None:
        """Queue a notification; never waits."""
        self._put({"jsonrpc": "2.0", "method": method, "params": params})

    async def room(self) -> None:
        """Wait until the client has read most of what was sent."""
        await self._output.room()

    async def disconnected(self) -> None:
        """Wait until nothing more can be written."""
        await self._output.closed_by_reader.wait()

    async def close(self) -> None:
        """Do nothing: `finish` writes the rest."""

    async def finish(self) -> None:
        """Write what is queued, and end."""
        self._output.end()
        await self._output.drained()

    def abandon(self) -> None:
        """Drop what is queued, because the client does not read."""
        self._output.abandon()

    def _parse(self, line: bytes) -> JsonObject | None:
        """Return the message of a line; answer a malformed one, and return None."""
        try:
            # `NaN` is not JSON, and would be passed on as such.
            message: object = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            self._refuse(None, PARSE_ERROR, f"not JSON: {error}"[:200])
            return None
        if not is_object(message):
            text = "batches are not supported" if is_array(message) else "an object was expected"
            self._refuse(None, INVALID_REQUEST, text)
            return None
        if "method" not in message:
            if message.get("error") is not None:
                # The library would take the result, and a question would count as answered.
                message.pop("result", None)
            return message if _is_answer(message) else None
        return self._checked_request(message)

    def _checked_request(self, message: JsonObject) -> JsonObject | None:
        """Return a request or notification with parameters that are an object; answer any other, and return None."""
        request_id, params = message.get("id"), message.get("params")
        if not _is_id(request_id):
            self._refuse(None, INVALID_REQUEST, "an id is a number or text")
        elif not isinstance(message["method"], str) or message.get("jsonrpc") != "2.0":
            self._refuse(request_id, INVALID_REQUEST, 'a request has `"jsonrpc": "2.0"` and the name of a method')
        elif params is not None and not is_object(params):
            self._refuse(request_id, INVALID_PARAMS, "the parameters are an object")
        elif "id" in message and request_id in self._open:
            self._refuse(None, INVALID_REQUEST, "another request with this id is unanswered")
        elif "id" in message and len(self._open) >= MOST_REQUESTS:
            self._refuse(request_id, INTERNAL_ERROR, f"{MOST_REQUESTS} requests are unanswered; wait for some of them")
        else:
            if "id" in message:
                self._open.add(request_id)
            # The library would take the fields of `_meta` for parameters of the method.
            known = {name: value for name, value in (params or {}).items() if name != "_meta"}
            return {**message, "params": known}
        return None

    def _refuse(self, request_id: object, code: int, text: str) -> None:
        self._put({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": text}})

    def _put(self, message: JsonObject) -> None:
        # An id must come back as it was; everything else may reach a terminal of the editor.
        shown = {name: part if name == "id" else visible_strings(part) for name, part in message.items()}
        self._output.put(json.dumps(shown, ensure_ascii=False, separators=(",", ":"), default=str).encode() + b"\n")


def visible_strings(value: Any, show: Callable[[str], str] = escaped) -> Any:
    """Return a JSON value whose texts show the characters that a terminal would act on as escapes."""
    if isinstance(value, str):
        return show(value)
    if is_object(value):
        return {show(name): visible_strings(inner, show) for name, inner in value.items()}
    return [visible_strings(inner, show) for inner in value] if is_array(value) else value


def _is_id(value: object) -> bool:
    """True for the id of a request. Text with half a character cannot be sent back."""
    if isinstance(value, str):
        return _HALF.search(value) is None
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _is_answer(message: JsonObject) -> bool:
    """True for a well-formed answer to one of our requests; any other is dropped, since nothing can be answered."""
    request_id, error = message.get("id"), message.get("error")
    is_known = isinstance(request_id, int) and not isinstance(request_id, bool)
    is_error = is_object(error) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    if is_known and ("result" in message or is_error):
        return True
    _LOG.warning("a message of the client is neither a request nor an answer")
    return False


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a JSON value")
