"""Answers to what a server asks while it serves a request: forms and pages for the user, requests to the model.

A question lives no longer than the requests to its server: once the last one has ended, it is cancelled. A form comes
as a restricted JSON Schema; every text of it is sanitised.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import mcp_types as types
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import ValidationError

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject, TextBlock, UserBlock, is_array, is_object
from tui_agent.protocol.server_question import FieldChoice, FieldKind, FormField, ServerQuestion
from tui_agent.protocol.visible_text import escaped

from .call_result import blocks_of
from .server_parts import QuestionAnswer, SampledMessage, SamplingRequest, ServerLog, ServerQuestions
from .tool_listing import clipped

MOST_FIELDS = 40
MOST_CHOICES = 200
_LONGEST_NAME = 100
_LONGEST_TEXT = 500
_FORMATS = ("email", "uri", "date", "date-time", "password", "secret")
_KINDS: dict[str, FieldKind] = {"string": "text", "number": "number", "integer": "integer", "boolean": "flag"}


def fields_of(schema: JsonObject) -> tuple[FormField, ...]:
    """Return the fields of a form.

    Raises:
        ValueError: it is not a form of the protocol; the text has the reason.
    """
    properties: object = schema.get("properties", {})
    required: object = schema.get("required", [])
    if schema.get("type", "object") != "object" or not is_object(properties) or not is_array(required):
        raise ValueError("the form is not an object with properties")
    if len(properties) > MOST_FIELDS:
        raise ValueError(f"the form has more than {MOST_FIELDS} fields")
    return tuple(_field(name, value, required=name in required) for name, value in properties.items())


def _field(name: str, value: object, *, required: bool) -> FormField:
    if not is_object(value) or not name or len(name) > _LONGEST_NAME:
        raise ValueError("a field of the form is not described, or has no usable name")
    kind, choices = _kind_and_choices(name, value)
    written: object = value.get("format")
    least, most = {
        "text": ("minLength", "maxLength"),
        "choices": ("minItems", "maxItems"),
    }.get(kind, ("minimum", "maximum"))
    field = FormField(
        name=name,
        kind=kind,
        title=_text(value.get("title"), _LONGEST_NAME),
        description=_text(value.get("description"), _LONGEST_TEXT),
        required=required,
        choices=choices,
        format="password" if value.get("writeOnly") is True else str(written) if written in _FORMATS else "",
        least=_number(value.get(least)),
        most=_number(value.get(most)),
    )
    return field.model_copy(update={"default": _default(field, value.get("default"))})


def _kind_and_choices(name: str, value: JsonObject) -> tuple[FieldKind, tuple[FieldChoice, ...]]:
    items: object = value.get("items")
    if value.get("type") == "array" and is_object(items):
        choices = _choices(items)
        if not choices:
            raise ValueError(f"the list {clipped(name, _LONGEST_NAME)} has no choices")
        return "choices", choices
    if choices := _choices(value):
        return "choice", choices
    written: object = value.get("type")
    kind = _KINDS.get(written) if isinstance(written, str) else None
    if kind is None:
        raise ValueError(f"the field {clipped(name, _LONGEST_NAME)} is neither text, number, yes or no, nor a choice")
    return kind, ()


def _choices(value: JsonObject) -> tuple[FieldChoice, ...]:
    """Return the choices of `enum` (with `enumNames`), `oneOf` or `anyOf`; empty if there are none."""
    enum, names = value.get("enum"), value.get("enumNames")
    pairs: list[tuple[object, object]] = []
    if is_array(enum):
        labels: Sequence[object] = names if is_array(names) and len(names) == len(enum) else [""] * len(enum)
        pairs = list(zip(enum, labels, strict=True))
    else:
        several: object = value.get("oneOf", value.get("anyOf", []))
        entries = [one for one in several if is_object(one)] if is_array(several) else []
        pairs = [(one.get("const"), one.get("title")) for one in entries]
    if len(pairs) > MOST_CHOICES:
        raise ValueError(f"a field has more than {MOST_CHOICES} choices")
    if not all(isinstance(one, str) for one, _ in pairs):
        raise ValueError("a choice is not text")
    return tuple(FieldChoice(value=str(one), label=_text(label, _LONGEST_NAME)) for one, label in pairs)


def _default(field: FormField, value: object) -> str | int | float | bool | tuple[str, ...] | None:
    """Return the default of a field; None if it has none or a wrong one."""
    try:
        checked = None if value is None else field.check(value)
    except ValueError:
        return None
    return tuple(checked) if isinstance(checked, list) else checked


def _text(value: object, limit: int) -> str:
    return clipped(value, limit) if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


MOST_OPEN = 3
LONGEST_MESSAGE = 2_000
LONGEST_URL = 4_000
LARGEST_REQUEST = 200_000
"""Characters of a request to the model."""
MOST_SAMPLED_MESSAGES = 100
REJECTED = -1
"""Error code of the protocol for a request to the model that the user rejected."""
_EXTENSION = 10.0
"""Seconds by which the time of calls that wait for the user is extended, again and again."""
_HOST_AND_PORT = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?")
"""No `\\`, which browsers take for the end of the host, and no `%`, which they decode."""
_STOP_REASONS = {"end_turn": "endTurn", "max_tokens": "maxTokens", "stop_sequence": "stopSequence"}


class ClientCallbacks:
    """The questions of one session."""

    def __init__(
        self, server: str, questions: ServerQuestions, calls: Callable[[], Iterable[str]], log: ServerLog
    ) -> None:
        self._server = server
        self._questions = questions
        self._calls = calls
        self._log = log
        self._requests = 0
        self._open: set[asyncio.Timeout] = set()
        self._is_extending = False

    @contextmanager
    def during_request(self) -> Generator[None]:
        """Accept questions of the server while the context is open."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                # A question lives no longer than the requests to its server.
                for timeout in self._open:
                    timeout.reschedule(0.0)

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """Ask the user to fill in a form or to open a page; return an error if the server may not ask now."""
        try:
            answer = await self.ask(self._question(params))
        except ValueError as error:
            return self._refused(str(error))
        return types.ElicitResult(action=answer.action, content=answer.content)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        """Ask the model, if the user allows it; return an error if not, or if the requests to the server end before."""
        sample = self._questions.sample
        assert sample is not None
        try:
            request = self._sampling_request(params)
            async with self._waiting():
                answer = await sample(request)
        except ValueError as error:
            return self._refused(str(error))
        except TimeoutError:
            return types.ErrorData(code=REJECTED, message="The request was cancelled.")
        except ToolError as error:
            return types.ErrorData(code=REJECTED, message=str(error))
        text, reason = _cut_at(answer.text, params.stop_sequences or ())
        return types.CreateMessageResult(
            role="assistant",
            content=types.TextContent(type="text", text=text),
            model=answer.model,
            stop_reason=reason or _STOP_REASONS.get(answer.stop_reason, answer.stop_reason),
        )

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Ask the user; `cancel` if the requests to the server end before the answer.

        Raises:
            ValueError: the server may not ask now.
        """
        ask = self._questions.ask
        if ask is None:
            raise ValueError("no user can answer here")
        try:
            async with self._waiting():
                return await ask(question)
        except TimeoutError:
            return QuestionAnswer("cancel")

    async def open_pages(self, error: MCPError) -> bool:
        """Ask the user to open the pages that a refused call needs; return False once they decline one."""
        try:
            pages = UrlElicitationRequiredError.from_error(error.error).elicitations
        except (ValidationError, ValueError, TypeError, AttributeError):
            return False
        for page in pages[:MOST_OPEN]:
            try:
                answer = await self.ask(self._question(page))
            except ValueError as problem:
                self._refused(str(problem))
                return False
            if answer.action != "accept":
                return False
        return True

    def _question(self, params: types.ElicitRequestParams) -> ServerQuestion:
        """Return a question of the server."""
        message = clipped(params.message, LONGEST_MESSAGE)
        if isinstance(params, types.ElicitRequestFormParams):
            fields = fields_of(params.requested_schema)
            return ServerQuestion(server=self._server, kind="form", message=message, fields=fields)
        return ServerQuestion(server=self._server, kind="url", message=message, url=checked_url(params.url))

    @asynccontextmanager
    async def _waiting(self) -> AsyncGenerator[None]:
        """Keep the calls of the server alive while a question is open; raise `TimeoutError` once they have ended."""
        if not self._requests:
            raise ValueError("a question needs a request in progress")
        if len(self._open) >= MOST_OPEN:
            raise ValueError("too many questions are open")
        async with asyncio.timeout(None) as timeout:
            self._open.add(timeout)
            if not self._is_extending:
                self._extend()
            try:
                yield
            finally:
                self._open.discard(timeout)

    def _extend(self) -> None:
        """Give the calls more time, again and again as long as a question is open."""
        self._is_extending = bool(self._open)
        if self._is_extending:
            for call_id in tuple(self._calls()):
                self._questions.extend_call(call_id, _EXTENSION)
            asyncio.get_running_loop().call_later(_EXTENSION, self._extend)

    def _sampling_request(self, params: types.CreateMessageRequestParams) -> SamplingRequest:
        """Return a request to the model."""
        if params.tools:
            raise ValueError("tools in sampling requests are not supported")
        if not 0 < len(params.messages) <= MOST_SAMPLED_MESSAGES or params.max_tokens < 1:
            raise ValueError("a sampling request needs messages and a token limit")
        messages = tuple(SampledMessage(one.role, _sampled_blocks(one.content_as_list)) for one in params.messages)
        if messages[0].role != "user" or messages[-1].role != "user":
            raise ValueError("the first and the last message must be of the user")
        texts = [block.text for one in messages for block in one.blocks if isinstance(block, TextBlock)]
        system = escaped(params.system_prompt or "")
        if sum(map(len, texts)) + len(system) > LARGEST_REQUEST:
            raise ValueError(f"the request is longer than {LARGEST_REQUEST:,} characters")
        return SamplingRequest(self._server, messages, system, params.max_tokens, params.temperature)

    def _refused(self, reason: str) -> types.ErrorData:
        self._log.add(f"question refused: {reason}")
        return types.ErrorData(code=types.INVALID_REQUEST, message=reason)


def checked_url(url: str) -> str:
    """Return the address of a page that a browser may open.

    Raises:
        ValueError: it is none, or it hides something: a user name, characters that are not plain ASCII, or those with
            which a browser reads another host than is shown.
    """
    parts = urlsplit(url)
    is_plain = url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL
    if parts.scheme not in ("http", "https") or not is_plain or _HOST_AND_PORT.fullmatch(parts.netloc) is None:
        raise ValueError(f"not a plain web address: {clipped(url, 200)}")
    return url


def _sampled_blocks(content: Iterable[types.SamplingMessageContentBlock]) -> tuple[UserBlock, ...]:
    blocks: list[UserBlock] = []
    for part in content:
        if not isinstance(part, types.TextContent | types.ImageContent):
            raise ValueError(f"content of type {part.type} is not supported in sampling requests")
        blocks += blocks_of([part])
    return tuple(blocks)


def _cut_at(text: str, sequences: Iterable[str]) -> tuple[str, str]:
    """Return a text up to the first of the stop sequences, and `stopSequence` if there is one in it."""
    places = [place for sequence in sequences if sequence and (place := text.find(sequence)) >= 0]
    return (text[: min(places)], "stopSequence") if places else (text, "")
