"""Commands that a killed program left running are named in one line, and ended on request."""

import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator

import pytest

from tests.tools.processes.test_process_tree import lives
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.session.stored_session import LostProcess
from tui_agent.tools.processes.detached_commands import record_of
from tui_agent.tools.processes.process_tree import TreeMark
from tui_agent.workbench.leftover_commands import NONE_RUNNING, LeftoverCommands

Start = Callable[[str], LostProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    """Return a function that starts a command as if left by a killed program."""
    started: list[subprocess.Popen[bytes]] = []

    def begin(command: str) -> LostProcess:
        mark = TreeMark.new()
        started.append(subprocess.Popen(["sleep", "600"], env=mark.put_into(os.environ), start_new_session=True))
        record = record_of(started[-1].pid, mark)
        assert record is not None
        return LostProcess(record, command)

    yield begin
    for process in started:
        process.kill()
        process.wait()


async def told_by(left: LeftoverCommands, act: Callable[[LeftoverCommands], Awaitable[None]]) -> list[Noticed | Warned]:
    with left.bus.subscribe() as heard:
        await act(left)
        return [one.event for one in heard.drain() if isinstance(one.event, Noticed | Warned)]


async def test_only_the_first_of_many_commands_are_named(start: Start) -> None:
    left = LeftoverCommands([start(f"sleep {number}") for number in range(5)], EventBus(), "/jobs kill")

    (warned,) = await told_by(left, LeftoverCommands.warn)

    assert "sleep 2 (pid" in warned.text
    assert "sleep 3" not in warned.text
    assert warned.text.endswith(") and 2 more commands. /jobs kill ends them.")


async def test_commands_are_ended_by_process_id_or_all_at_once(start: Start) -> None:
    one, two = start("one"), start("two")
    left = LeftoverCommands([one, two], EventBus(), "/jobs kill")

    (ended,) = await told_by(left, lambda left: left.end(one.process.pid))
    assert ended.text == f"Ended: sleep (pid {one.process.pid})."
    assert (lives(one.process.pid), lives(two.process.pid)) == (False, True)

    (missed,) = await told_by(left, lambda left: left.end(one.process.pid))
    assert missed.text == f"No process {one.process.pid} of an earlier tui-agent is running."

    await left.end(None)
    assert not lives(two.process.pid)
    (nothing,) = await told_by(left, lambda left: left.end(None))
    assert nothing == Noticed(code="left_ended", text=NONE_RUNNING)
