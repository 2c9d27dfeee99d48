"""Recorded streams replay the same events and errors to the same conversations."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from tests.support.stream_helpers import heard
from tui_agent.protocol.messages import JsonObject, user_message
from tui_agent.protocol.provider import ModelInfo, ModelProvider, ModelRequest, StreamEvent
from tui_agent.providers import ScriptedProvider, Think, call, fail, reply
from tui_agent.providers.recorded_streams import RecordingProvider, ReplayProvider


def asking(text: str) -> ModelRequest:
    return ModelRequest((user_message(text),))


async def noted(provider: ModelProvider, *texts: str) -> tuple[list[JsonObject], list[list[StreamEvent] | str]]:
    """Return the records of some requests, converted through JSON, and the answer to each."""
    notes: list[JsonObject] = []
    noting = RecordingProvider(provider, lambda note: notes.append(json.loads(json.dumps(note))))
    return notes, [await answer_of(noting, text) for text in texts]


async def answer_of(provider: ModelProvider, text: str) -> list[StreamEvent] | str:
    got, error = await heard(provider.stream(asking(text)))
    return got if error is None else f"{error} {error.kind} {error.status} {error.retry_after} {len(got)}"


async def test_every_kind_of_event_is_replayed() -> None:
    script = [
        reply(Think("hm", "sig"), "Let me look.", call("read", path="a.py")),
        reply("half", fail("overloaded", "too busy", status=529, retry_after=2.5)),
    ]
    notes, answers = await noted(ScriptedProvider(script, model=ModelInfo("some-model")), "one", "two")

    again = ReplayProvider(notes)

    assert (again.model.name, again.left) == ("some-model", 2)
    assert [await answer_of(again, "one"), await answer_of(again, "two")] == answers
    assert answers[1] == "too busy overloaded 529 2.5 2"


async def test_each_conversation_gets_its_own_answers_whatever_the_order() -> None:
    notes, (first, second, third) = await noted(ScriptedProvider(["for a", "for b", "a again"]), "a", "b", "a")

    again = ReplayProvider(notes)

    assert [await answer_of(again, text) for text in ("b", "a", "something else")] == [second, first, third]
    assert await answer_of(again, "a") == "the recording has no answer left unavailable None None 0"


async def test_closing_the_iterator_closes_the_wrapped_stream() -> None:
    provider = ScriptedProvider([reply("a", "b")])
    notes: list[JsonObject] = []
    stream = RecordingProvider(provider, notes.append).stream(asking("x"))

    assert isinstance(stream, AsyncGenerator)
    async with aclosing(stream):
        await anext(stream)

    assert provider.closed_early == 1
    assert "end" in notes[-1]
    assert await answer_of(ReplayProvider(notes), "x") == "the recorded answer is incomplete stream_cut None None 1"


async def test_damaged_records_are_skipped() -> None:
    notes, (answer,) = await noted(ScriptedProvider(["fine"]), "a")
    damaged: list[JsonObject] = [
        {},
        {"request": "x"},
        {"request": 1, "event": {"type": "TextDelta", "data": {"text": 5}}},
        {"request": 1, "event": {"type": "Nothing", "data": {}}},
        {"request": 9, "error": {"kind": "no such"}},
    ]

    again = ReplayProvider([*notes, *damaged])

    assert await answer_of(again, "a") == answer
    assert await answer_of(again, "b") == "the model failed unavailable None None 0"
