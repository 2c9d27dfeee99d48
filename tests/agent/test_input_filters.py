"""Input filters pass, annotate or reject messages of the user."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from tui_agent.agent.input_filters import InputVerdict
from tui_agent.protocol.events import InputRejected, InputWarned, RunEnded, SteeringDropped
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.provider import ModelRequest
from tui_agent.providers import call, reply
from tui_agent.providers.scripted_provider import Reply

from .harness import BenchMaker, ScriptedTool


@dataclass
class FakeFilter:
    """Answers as its function says."""

    name: str
    answer: Callable[[str], object]
    asked: list[str] = field(default_factory=list)

    async def check(self, message: UserMessage) -> InputVerdict:
        self.asked.append(message.text)
        await asyncio.sleep(0)
        return self.answer(message.text)  # type: ignore[return-value]


def no_secrets(text: str) -> InputVerdict:
    return InputVerdict("reject", "it holds a key") if "sk-" in text else InputVerdict()


async def test_a_message_that_passes_is_unchanged_and_notes_follow_it(bench: BenchMaker) -> None:
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


async def test_the_first_rejection_ends_the_run_before_a_request_is_sent(bench: BenchMaker) -> None:
    later = FakeFilter("later", lambda _: InputVerdict())
    b = bench(["never"], input_filters=[FakeFilter("keys", no_secrets), later])

    report = await b.loop.run("my key is sk-123")

    assert (report.reason, report.final_text) == ("input_rejected", "The message was not sent: it holds a key")
    assert b.texts == []
    assert (b.provider.requests, later.asked) == ([], [])
    assert b.of(InputRejected) == [InputRejected(filter="keys", reason="it holds a key", source="prompt")]
    assert (await b.loop.run("hello")).reason == "done"


@pytest.mark.parametrize("answer", [lambda _: 1 / 0, lambda _: "yes"], ids=["raises", "nonsense"])
async def test_a_failing_filter_rejects_the_message(bench: BenchMaker, answer: Callable[[str], object]) -> None:
    b = bench(["never"], input_filters=[FakeFilter("broken", answer)])

    assert (await b.loop.run("Go")).reason == "input_rejected"
    assert "filter broken" in b.of(InputRejected)[0].reason


@pytest.mark.parametrize(("how", "source"), [("steer", "steering"), ("follow_up", "follow_up")])
async def test_messages_during_a_run_are_filtered_and_rejected_ones_dropped(
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
async def test_a_run_ends_when_only_rejected_messages_are_queued(bench: BenchMaker, how: str) -> None:
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
