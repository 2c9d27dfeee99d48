"""Agents whose conversation is restored to an earlier state."""

import asyncio

import pytest

from tui_agent.context import ContextGuard
from tui_agent.protocol.errors import AlreadyRunningError, CompactionError
from tui_agent.protocol.events import SessionRewound
from tui_agent.protocol.messages import user_message
from tui_agent.providers import call, reply

from .harness import BenchMaker, ScriptedTool


def told(to_seq: int, *, conversation: bool = True, says: str = "") -> SessionRewound:
    notice = user_message(says, "notice") if says else None
    return SessionRewound(to_seq=to_seq, from_seq=to_seq + 1, text="x", conversation=conversation, notice=notice)


async def test_the_next_run_continues_from_there(bench: BenchMaker) -> None:
    b = bench(["one", "two", "three"])
    b.condenses = True
    await b.loop.run("first")
    messages, seq = tuple(b.loop.history.messages()), b.loop.bus.last_seq
    await b.loop.run("second")

    b.loop.apply_rewind(messages, told(seq))
    await b.loop.run("third")

    assert b.sent(2) == ["user: first", "assistant: one", "user: third"]


async def test_a_notice_is_the_newest_message(bench: BenchMaker) -> None:
    b = bench(["one", "two"])
    await b.loop.run("first")
    messages = tuple(b.loop.history.messages())

    b.loop.apply_rewind(messages, told(b.loop.bus.last_seq, conversation=False, says="a.py is another one"))

    assert tuple(b.loop.history.messages())[:-1] == messages
    assert b.loop.history.messages()[-1].role == "user"


async def test_it_is_refused_during_a_run(bench: BenchMaker) -> None:
    tool = ScriptedTool("look").hold()
    b = bench([reply(call("look")), "done"], tool)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(b.loop.run("first"))
        await tool.started.wait()
        with pytest.raises(AlreadyRunningError):
            b.loop.apply_rewind((), told(0))
        tool.go_on.set()


async def test_an_earlier_compaction_can_no_longer_be_undone(bench: BenchMaker) -> None:
    guard = ContextGuard()
    b = bench(["one"], guard=guard)
    await b.loop.run("first")

    b.loop.apply_rewind(tuple(b.loop.history.messages()), told(b.loop.bus.last_seq))

    assert not guard.can_undo(b.loop.history)
    with pytest.raises(CompactionError):
        b.loop.undo_compaction()
