"""A function becomes a tool: schema from its signature, description from its docstring."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from tests.support.table import table
from tui_agent.protocol import ToolContext, function_tool
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.function_tool import tool
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, Verdict

variable = ContextVar("variable", default="unset")


@function_tool(read_only=True)
async def search_web(query: str, context: ToolContext, limit: int = 3) -> str:
    """Searches the web."""
    context.progress("searching")
    return f"{query} x{limit}"


async def test_a_plain_function_runs_in_a_thread_and_the_loop_continues() -> None:
    loop, seen, open_gate = asyncio.get_running_loop(), list[str](), threading.Event()

    @tool
    def plain(query: str, context: ToolContext) -> str:
        """Wait for the loop."""
        context.measure("thread", threading.current_thread().name)
        loop.call_soon_threadsafe(open_gate.set)
        assert open_gate.wait(60), "the loop was blocked"
        return f"{query} {variable.get()}"

    variable.set("inherited")
    context = ToolContext(call_id="1", tool_name="plain", report=lambda update: seen.append(type(update).__name__))

    assert (await plain.execute({"query": "a"}, context)).text == "a inherited"
    assert plain.runs_in_thread
    assert context.metrics["thread"].value == "tool-function"


async def test_a_thread_can_get_the_verdict_on_another_call() -> None:
    asked_in: list[int] = []

    def can_use(name: str, arguments: JsonObject) -> Verdict:
        asked_in.append(threading.get_ident())
        return "allow" if name == "read" else "deny"

    @tool
    def plain(context: ToolContext) -> str:
        """Ask."""
        return context.can_use("read", {}) + context.can_use("bash", {})

    context = ToolContext(call_id="1", tool_name="plain", can_use=can_use)

    assert (await plain.execute({}, context)).text == "allowdeny"
    assert asked_in == [threading.get_ident()] * 2


@table("make", [tool, tool(), tool(name="echo"), tool(description="Say it again."), function_tool])
def test_the_decorator_works_bare_with_arguments_and_as_a_call(make: Any) -> None:
    def echo(text: str) -> str:
        """Say it again."""
        return text

    made = make(echo)

    assert (made.name, made.spec.description, made("x"), made.function) == ("echo", "Say it again.", "x", echo)


def test_traits_may_depend_on_the_arguments(tmp_path: Path) -> None:
    @tool(
        read_only=lambda args: args["mode"] == "look",
        concurrency_safe=lambda args: args["mode"] != "alone",
        timeout=3,
        accesses=lambda args: Accesses.of(reads=str(tmp_path / "a"), writes=[tmp_path / "x" / ".." / "b", "notes.txt"]),
    )
    def act(mode: str) -> str:
        """Act."""
        return mode

    assert [act.is_read_only({"mode": mode}) for mode in ("look", "write")] == [True, False]
    assert [act.is_concurrency_safe({"mode": mode}) for mode in ("write", "alone")] == [True, False]
    assert act.timeout({}) == 3
    root = tmp_path.resolve()
    writes = frozenset({root / "b", Path("notes.txt").resolve()})
    assert act.accesses({}) == Accesses(reads=frozenset({root / "a"}), writes=writes)
    assert tool(act.function).accesses({}) is None


async def answer(arguments: JsonObject) -> bool:
    return True


@table(
    ("option", "value", "words"),
    [
        ("timeout", 0, "the timeout of tool act must be more than 0 seconds, got 0"),
        ("timeout", -1, "more than 0 seconds"),
        ("timeout", float("nan"), "more than 0 seconds"),
        ("timeout", True, "more than 0 seconds"),
        ("timeout", "5", "more than 0 seconds"),
        (
            "read_only",
            "yes",
            "read_only of tool act must be True, False or a plain function of the arguments, got 'y",
        ),
        ("read_only", None, "read_only of tool act must be"),
        ("read_only", answer, "a plain function"),
        ("concurrency_safe", 1, "concurrency_safe of tool act must be"),
        ("accesses", Accesses(), "accesses of tool act must be a plain function of the arguments, got an Accesses"),
        ("accesses", Accesses, "got the class Accesses"),
        ("name", "my tool!", "letters, digits, _ and -"),
        ("name", "x" * 65, "letters, digits, _ and -"),
        ("name", 3, "letters, digits, _ and -"),
        ("description", 3, "the description of tool act must be text, got 3"),
    ],
)
def test_an_option_of_the_wrong_kind_is_refused(option: str, value: Any, words: str) -> None:
    def act() -> str:
        """Act."""
        return ""

    with pytest.raises(ConfigurationError) as caught:
        tool(act, **{option: value})
    assert words in str(caught.value)


def pieces() -> Iterator[str]:
    """Yield."""
    yield "a"


async def later_pieces() -> AsyncIterator[str]:
    """Yield later."""
    yield "a"


def grüße() -> str:
    """Greet."""
    return ""


async def wordless(query: str) -> str:
    return query


async def untyped(query) -> str:
    """Does something."""
    return query


@table(
    ("function", "words"),
    [
        (wordless, "docstring"),
        (untyped, "annotation"),
        (lambda: "x", "a lambda has neither name nor description"),
        (pieces, "tool pieces yields"),
        (later_pieces, "tool later_pieces yields"),
        (grüße, "letters, digits"),
        (ToolContext, "got the class ToolContext"),
        (3, "a tool must be a function, or an object that can be called, got 3"),
        (search_web, "search_web is already a tool"),
    ],
)
def test_values_that_cannot_be_a_tool_are_refused(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        tool()(function)
