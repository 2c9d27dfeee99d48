"""Conversations that become too long for the model's window (S4-91)."""

import asyncio

import pytest

from tui_agent.context import ContextGuard, GuardOptions
from tui_agent.protocol.errors import AlreadyRunningError, CompactionError, ConfigurationError
from tui_agent.protocol.events import (
    CompactionEnded,
    CompactionStarted,
    CompactionUndone,
    ContextUsage,
    SessionRewound,
    Warned,
)
from tui_agent.protocol.messages import JsonObject, Usage, user_message
from tui_agent.protocol.provider import ModelInfo
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.providers import Wait, call, fail, reply
from tui_agent.providers.scripted_provider import Reply
from tui_agent.session.history_fold import fold_history

from .harness import Bench, BenchMaker, ScriptedTool

WINDOW = 10_000
DIGEST = GuardOptions(strategy="digest")


class WordyTool(ScriptedTool):
    """Tool that answers with a different long text each time."""

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await super().execute(arguments, context)
        return ToolResult.of_text(f"{len(self.runs)}: " + "word " * 150)


def looks(count: int, *, read: int = 0) -> list[Reply]:
    """Return answers with one call each; the last counts `read` tokens of input."""
    usages = [Usage(input_tokens=10)] * (count - 1) + [Usage(input_tokens=read or 10)]
    return [reply(f"Look {place}.", call("look", n=place), usage=usage) for place, usage in enumerate(usages)]


def made(bench: BenchMaker, *steps: object, options: GuardOptions = DIGEST, **config: object) -> Bench:
    b = bench(steps, WordyTool("look"), guard=ContextGuard(options), **config)  # pyright: ignore
    b.provider.model = ModelInfo("small", context_window=WINDOW)
    return b


async def test_s4_91_a_run_that_fills_the_window_continues_with_a_shorter_conversation(bench: BenchMaker) -> None:
    b = made(bench, *looks(12, read=9_000), "Done.")

    report = await b.loop.run("Fix the tests")

    assert report.reason == "done"
    (started,), (ended,) = b.of(CompactionStarted), b.of(CompactionEnded)
    assert (started.trigger, started.tokens_before > 8_000) == ("automatic", True)
    assert (ended.ok, ended.strategy, ended.tokens_after <= 4_500) == (True, "digest", True)
    sent = b.sent(12)
    assert sent[0] == "user: Fix the tests"
    assert sent[1].startswith("user: [The earlier part of this conversation was condensed.")
    assert len(sent) == 2 + 3 * 2, "as many of the last steps as fit"
    types = b.types()
    at = types.index("compaction.started")
    assert types[at - 1 : at + 2] == ["step.started", "compaction.started", "compaction.ended"]
    assert len(b.of(CompactionEnded)) == 1, "and not again at every step"


@pytest.mark.parametrize(
    "bad",
    [
        fail("overloaded"),
        reply("Cut", stop_reason="max_tokens"),
        reply(call("look")),
        reply("Text", call("look"), stop_reason="end_turn"),
        reply(" "),
    ],
    ids=["error", "cut", "call", "call beside text", "blank"],
)
async def test_a_digest_replaces_an_unusable_summary(bench: BenchMaker, bad: object) -> None:
    b = made(bench, *looks(12, read=9_000), bad, "Done.", options=GuardOptions())

    report = await b.loop.run("Fix the tests")

    assert (report.reason, b.of(CompactionEnded)[0].strategy) == ("done", "digest")
    assert [warning.code for warning in b.of(Warned)] == ["summary_failed"]


async def test_a_second_overflow_is_an_error_and_the_conversation_is_kept(bench: BenchMaker) -> None:
    too_long = fail("context_exceeded", "prompt is too long", status=400)
    b = made(bench, *looks(12), too_long, too_long, "unused")

    report = await b.loop.run("Fix the tests")

    assert (report.reason, report.error_kind, b.provider.left) == ("error", "context_exceeded", 1)
    assert len(b.of(CompactionEnded)) == 1


async def test_an_abort_ends_it_and_changes_nothing(bench: BenchMaker) -> None:
    reached = asyncio.Event()
    b = made(bench, *looks(12, read=9_000), reply(Wait(asyncio.Event(), reached)), options=GuardOptions())

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Fix the tests"))
        await reached.wait()
        length = b.loop.history.length
        b.loop.abort("enough")

    assert running.result().reason == "aborted"
    assert b.loop.history.length == length
    assert [(event.ok, event.error is not None) for event in b.of(CompactionEnded)] == [(False, True)]
    assert b.provider.closed_early == 1


async def test_the_user_can_compact_and_undo_it(bench: BenchMaker) -> None:
    b = made(bench, *looks(12), "Done.", "Again.")
    await b.loop.run("Fix the tests")
    before = list(b.loop.history.messages())

    assert await b.loop.compact(focus="the file names")
    short = b.loop.history.length
    await b.loop.run("And?")
    b.loop.undo_compaction()

    assert short < len(before)
    assert list(b.loop.history.messages())[: len(before)] == before
    assert b.texts[-2:] == ["user: And?", "assistant: Again."]
    assert [event.trigger for event in b.of(CompactionStarted)] == ["manual"]
    assert b.of(CompactionUndone)[0].restored == 1 + len(before) - short
    with pytest.raises(CompactionError):
        b.loop.undo_compaction()


async def test_compaction_and_rewind_are_refused_during_a_run(bench: BenchMaker) -> None:
    tool = ScriptedTool("slow").hold()
    b = bench([reply(call("slow")), "Done."], tool)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await tool.started.wait()
        with pytest.raises(AlreadyRunningError):
            await b.loop.compact()
        for edit in (b.loop.undo_compaction, lambda: b.loop.apply_rewind((), told(0))):
            with pytest.raises(AlreadyRunningError):
                edit()
        tool.go_on.set()


async def test_without_a_guard_the_conversation_does_not_change(bench: BenchMaker) -> None:
    b = bench(["Done."], guard=None)
    await b.loop.run("Go")

    with pytest.raises(ConfigurationError, match="no context guard"):
        await b.loop.compact()


async def test_the_size_of_the_conversation_is_one_number_also_after_compaction_undo_and_resume(
    bench: BenchMaker,
) -> None:
    """The counts of the server are far from an estimate by characters, so that a mixture of both shows."""
    b = made(bench, *looks(12, read=7_000), reply("Done.", usage=Usage(input_tokens=7_100, output_tokens=9)))
    await b.loop.run("Fix the tests")
    before = b.of(ContextUsage)[-1].tokens
    assert b.loop.history.estimated_tokens() == before >= 7_100

    assert await b.loop.compact()
    ended = b.of(CompactionEnded)[-1]
    usage = b.of(ContextUsage)[-1]
    assert (ended.tokens_before, ended.tokens_after) == (before, usage.tokens)
    assert (usage.source, b.loop.history.is_anchored) == ("estimate", False)
    assert 1_000 < usage.tokens < before

    fold = fold_history(b.told)
    resumed = made(bench, history=fold.messages(), compactions=fold.compactions())
    assert resumed.loop.history.estimated_tokens() == usage.tokens

    for one in (b, resumed):
        one.loop.undo_compaction()
        assert one.of(ContextUsage)[-1].tokens == before
        assert one.of(CompactionUndone)[-1].tokens_after == before


def told(to_seq: int, *, conversation: bool = True, says: str = "") -> SessionRewound:
    notice = user_message(says, "notice") if says else None
    return SessionRewound(to_seq=to_seq, from_seq=to_seq + 1, text="x", conversation=conversation, notice=notice)


async def test_a_notice_is_the_newest_message(bench: BenchMaker) -> None:
    b = bench(["one", "two"])
    await b.loop.run("first")
    messages = tuple(b.loop.history.messages())

    b.loop.apply_rewind(messages, told(b.loop.bus.last_seq, conversation=False, says="a.py is another one"))

    assert tuple(b.loop.history.messages())[:-1] == messages
    assert b.loop.history.messages()[-1].role == "user"


async def test_an_earlier_compaction_can_no_longer_be_undone(bench: BenchMaker) -> None:
    guard = ContextGuard()
    b = bench(["one"], guard=guard)
    await b.loop.run("first")

    b.loop.apply_rewind(tuple(b.loop.history.messages()), told(b.loop.bus.last_seq))

    assert not guard.can_undo(b.loop.history)
    with pytest.raises(CompactionError):
        b.loop.undo_compaction()
