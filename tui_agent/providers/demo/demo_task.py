"""The part of a request that the offline model uses, the last prompt and everything after it; and its answer."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tui_agent.protocol.messages import JsonObject, is_array, is_object

_NOTICE = re.compile(r"^\s*<system-notice>.*</system-notice>\s*$", re.DOTALL)
_POSTPONED = re.compile(r"user sent a message first|queued user message", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
_FOOTNOTES = re.compile(r"(?:(?:^|\n)\[[^\n]*\])+\s*$")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call and its result."""

    call_id: str
    name: str
    arguments: JsonObject
    text: str = ""
    is_error: bool = False

    @property
    def postponed(self) -> bool:
        """True if the call did not run because the user sent a message first."""
        return self.is_error and bool(_POSTPONED.search(self.text))

    @property
    def plain_lines(self) -> list[str]:
        """Lines of the result; for a file that was read, without line numbers and notes."""
        if self.name != "read":
            return self.text.splitlines()
        return _LINE_NUMBER.sub("", _FOOTNOTES.sub("", self.text)).splitlines()


Outcomes: TypeAlias = tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """The calls of one answer, and the messages the user sent while they ran."""

    outcomes: Outcomes
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """The last prompt and everything after it."""

    prompt: str = ""
    said: tuple[str, ...] = ()
    """Messages before the first answer."""
    exchanges: tuple[Exchange, ...] = ()
    first: bool = True
    """True if this is the first prompt of the conversation."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that may be called."""


@dataclass(frozen=True, slots=True)
class DemoCall:
    """A tool call."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class DemoTurn:
    """One answer, or a part of one."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()
    waits: "Goal | None" = field(default=None, compare=False)
    """Goal that receives the results; set exactly when there are calls."""
    thinking: str = ""
    fresh_sample: bool = False
    """True if the sample project must be copied anew before the calls run."""
    in_tour: bool = False
    tools: frozenset[str] = frozenset()
    """Tools that the whole goal needs."""

    def after(self, text: str) -> "DemoTurn":
        """Return the turn with a text before its own."""
        return replace(self, text="\n\n".join(part for part in (text, self.text) if part))


Goal: TypeAlias = Callable[[Outcomes | None], DemoTurn]
"""Returns the turn after the results of its calls; None: they are skipped."""


def read_request(body: JsonObject) -> Task:
    """Return the last prompt (a user message without tool results) and everything after it; skip invalid parts."""
    tools = frozenset(name for tool in _objects(body.get("tools")) if isinstance(name := tool.get("name"), str))
    task = Task(tools=tools)
    started = False
    calls: dict[str, Outcome] = {}
    for message in _objects(body.get("messages")):
        blocks = _blocks(message)
        if message.get("role") == "assistant":
            calls = {call.call_id: call for call in _calls(blocks)}
            continue
        said = tuple(_words(blocks))
        outcomes = tuple(_outcomes(blocks, calls))
        calls = {}
        if outcomes:
            task = replace(task, exchanges=(*task.exchanges, Exchange(outcomes, said)))
        elif said:
            task = Task(said[0], said[1:], first=not started, tools=tools)
            started = True
    return task


def _calls(blocks: list[JsonObject]) -> Iterator[Outcome]:
    for block in blocks:
        if block.get("type") == "tool_use":
            arguments: object = block.get("input")
            yield Outcome(str(block.get("id")), str(block.get("name")), arguments if is_object(arguments) else {})


def _outcomes(blocks: list[JsonObject], calls: dict[str, Outcome]) -> Iterator[Outcome]:
    for block in blocks:
        call = calls.get(str(block.get("tool_use_id"))) if block.get("type") == "tool_result" else None
        if call is not None:
            yield replace(call, text="\n".join(_texts(block.get("content"))), is_error=block.get("is_error") is True)


def _words(blocks: list[JsonObject]) -> Iterator[str]:
    """Yield the user's texts, without notices of the system."""
    for text in _texts(blocks):
        if not _NOTICE.match(text) and text.strip():
            yield text.strip()


def _blocks(message: JsonObject) -> list[JsonObject]:
    content: object = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(_objects(content))


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in _objects(content):
        text: object = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            yield text


def _objects(value: object) -> Iterator[JsonObject]:
    if is_array(value):
        for item in value:
            if is_object(item):
                yield item
