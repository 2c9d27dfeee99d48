"""Filters of user input: pass, add a note, refuse."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.agent.guardrails import InputVerdict
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import InputRejected, InputWarned, RunEnded, SteeringDropped
from tui_agent.protocol.messages import (
    TextBlock,
    UserMessage,
    user_message,
)
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import ScriptedProvider, call, reply
from tui_agent.providers.scripted_provider import Reply

from .harness import BenchMaker, ScriptedTool


@dataclass
class FakeFilter:
    """Filter that answers with the result of its function."""

    name: str
    answer: Callable[[str], object]
    asked: list[str] = field(default_factory=list)

    async def check(self, message: UserMessage) -> InputVerdict:
        self.asked.append(message.text)
        await asyncio.sleep(0)
        return self.answer(message.text)  # type: ignore[return-value]


def no_secrets(text: str) -> InputVerdict:
    return InputVerdict("reject", "it holds a key") if "sk-" in text else InputVerdict()


async def test_accepted_input_is_delivered_unchanged_and_followed_by_notes(bench: BenchMaker) -> None:
    quiet = FakeFilter("quiet", lambda _: InputVerdict())
    first = FakeFilter("first", lambda _: InputVerdict("warn", "be careful"))
    second = FakeFilter("second", lambda _: InputVerdict("warn", "very careful"))
    b = bench(["Done."], input_filters=[quiet, first, second])

    await b.loop.run("Go")

    assert b.sent(0) == ["user: Go\n[Note by first: be careful]\n[Note by second: very careful]"]
    assert [(event.filter, event.text, event.source) for event in b.of(InputWarned)] == [
        ("first", "be careful", "prompt"),
        ("second", "very careful", "prompt"),
    ]


async def test_the_first_refusal_ends_the_run_before_anything_is_sent(bench: BenchMaker) -> None:
    later = FakeFilter("later", lambda _: InputVerdict())
    b = bench(["never"], input_filters=[FakeFilter("keys", no_secrets), later])

    report = await b.loop.run("my key is sk-123")

    assert (report.reason, report.final_text) == ("input_rejected", "The message was not sent: it holds a key")
    assert b.texts == []
    assert (b.provider.requests, later.asked) == ([], [])
    assert b.of(InputRejected) == [InputRejected(filter="keys", reason="it holds a key", source="prompt")]
    assert (await b.loop.run("hello")).reason == "done"


@pytest.mark.parametrize("answer", [lambda _: 1 / 0, lambda _: "yes"], ids=["raises", "nonsense"])
async def test_a_filter_that_raises_lets_nothing_pass(bench: BenchMaker, answer: Callable[[str], object]) -> None:
    b = bench(["never"], input_filters=[FakeFilter("broken", answer)])

    assert (await b.loop.run("Go")).reason == "input_rejected"
    assert "filter broken" in b.of(InputRejected)[0].reason


@pytest.mark.parametrize(("how", "source"), [("steer", "steering"), ("follow_up", "follow_up")])
async def test_queued_messages_are_filtered_too_and_refused_ones_dropped(
    bench: BenchMaker, how: str, source: str
) -> None:
    tool = ScriptedTool("look").hold()
    b = bench([reply(call("look")), "Done.", "Seen."], tool, input_filters=[FakeFilter("keys", no_secrets)])

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await tool.started.wait()
        getattr(b.loop, how)("it is sk-456")
        getattr(b.loop, how)("fine words")
        tool.go_on.set()

    assert running.result().reason == "done"
    assert [text for text in b.texts if text.startswith("user")] == ["user: Go", "user: fine words"]
    assert [(event.source, event.reason) for event in b.of(InputRejected)] == [(source, "it holds a key")]
    assert [(event.text, event.reason) for event in b.of(SteeringDropped)] == [("it is sk-456", "it holds a key")]
    assert b.loop.waiting_messages == ()


@pytest.mark.parametrize("how", ["steer", "follow_up"])
async def test_if_only_refused_messages_are_queued_the_run_ends(bench: BenchMaker, how: str) -> None:
    b = bench([], input_filters=[FakeFilter("keys", no_secrets)])

    def speak(_: ModelRequest) -> Reply:
        getattr(b.loop, how)("it is sk-456")
        return reply("Done.")

    b.provider.add(speak, "never")

    assert (await b.loop.run("Go")).reason == "done"
    assert (b.provider.left, b.loop.waiting_messages) == (1, ())


async def test_an_abort_during_a_filter_leaves_the_message_queued(bench: BenchMaker) -> None:
    asked = asyncio.Event()

    class Slow(FakeFilter):
        async def check(self, message: UserMessage) -> InputVerdict:
            if message.kind == "steer":
                asked.set()
                await asyncio.Event().wait()
            return InputVerdict()

    b = bench(["Done."], input_filters=[Slow("slow", no_secrets)])
    b.loop.steer("later")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await asked.wait()
        b.loop.abort("enough")

    assert running.result().reason == "aborted"
    assert [message.text for message in b.loop.waiting_messages] == ["later"]
    assert len(b.of(RunEnded)) == 1


@table(
    ("given", "words"),
    [
        (42, "the input of a run must be text, a message, or a list of blocks or messages, got 42"),
        ({"role": "user"}, "got {'role': 'user'}"),
        ([{"role": "user"}], "the input of a run[0] must be text, a block or a message, got {'role': 'user'}"),
        (["x", 3], "the input of a run[1] must be text, a block or a message, got 3"),
        ([], "an empty message cannot be sent"),
        ("  ", "an empty message cannot be sent"),
        (["x", user_message("y")], "with blocks or with messages, not with both at once"),
    ],
)
async def test_anything_else_is_refused(given: Any, words: str) -> None:
    loop = AgentLoop(AgentLoopConfig(provider=ScriptedProvider(["done"])))

    with pytest.raises(ConfigurationError) as caught:
        await loop.run(given)
    assert words in str(caught.value)
    with pytest.raises(ConfigurationError, match="nothing to run"):
        await loop.run()
    assert loop.history.length == 0


def test_an_agent_accepts_texts_and_messages() -> None:
    loop: Any = AgentLoop(AgentLoopConfig(provider=ScriptedProvider([])))

    steer, later = loop.steer("first"), loop.follow_up(UserMessage(content=(TextBlock(text="later"),)))
    assert [message.text for message in loop.waiting_messages] == ["first", "later"]
    assert (steer.kind, later.kind) == ("steer", "follow_up")
    for tell in (loop.steer, loop.follow_up):
        with pytest.raises(ConfigurationError, match="a message must be text or a UserMessage, got 42"):
            tell(42)
        with pytest.raises(ConfigurationError, match=r"got \['x'\]"):
            tell(["x"])
