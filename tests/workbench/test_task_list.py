"""Sessions of other programs in one list: their state, their questions, and answers over their private socket."""

import asyncio
import json
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.fussy_server import FussyServer
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import ApprovalResolved
from tui_agent.protocol.facts.page_facts import TaskFact
from tui_agent.providers.demo.demo_server import block_frames
from tui_agent.session.journal import is_journal_open
from tui_agent.session.store import SessionStore
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.live_session import TaskList
from tui_agent.workbench.workbench import Workbench

pytestmark = pytest.mark.slow

COMMAND = {"command": "touch made.txt", "description": "make it"}


@asynccontextmanager
async def session_in(folder: Path, server: FussyServer, **changes: Any) -> AsyncGenerator[Workbench]:
    """Yield a saved session of a user who can answer, whose model is that of a server."""
    endpoint = {"base_url": server.base_url, "models": [{"name": "big", "window": 8_192}]}
    values = {"model": "box/big", "sandbox": "off", "providers": {"box": endpoint}}
    options = replace(LaunchOptions.for_command(folder), settings=values, keep_session=True, **changes)
    async with Workbench.open(options, watched=True) as bench:
        yield bench


async def found(tasks: TaskList, holds: Callable[[TaskFact], bool]) -> TaskFact:
    """Wait until the list has one session that fits."""
    async with asyncio.timeout(60):
        while True:
            for task in await tasks.list():
                if holds(task):
                    return task
            await asyncio.sleep(0.01)


def asking() -> list[bytes]:
    return list(block_frames(0, {"type": "tool_use", "id": "t1", "name": "bash", "input": json.dumps(COMMAND)}))


@pytest.mark.parametrize("answer", ["allow", "deny"])
async def test_a_question_of_another_session_is_answered_in_the_list(tmp_path: Path, answer: str) -> None:
    calls = [asking(), None]
    async with FussyServer() as server, session_in(tmp_path, server) as bench:
        server.frames = calls.pop(0)
        server.stop_reason = lambda _: "tool_use" if server.frames else "end_turn"
        sessions = Locations.of_user().sessions_dir
        tasks = TaskList(sessions)
        with bench.events.subscribe() as heard:
            run = asyncio.create_task(bench.agent.run("make it"))
            task = await found(tasks, lambda one: one.state == "waiting")
            server.frames = calls.pop(0)

            assert (task.title, task.folder) == ("make it", str(tmp_path))
            (question,) = task.questions
            assert question.answers == ("allow", "deny")
            assert question.details["args"] == COMMAND
            file = sessions / f"{task.id}.live"
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(sessions.stat().st_mode) == 0o700
            assert stat.S_IMODE(Path(task.socket).parent.stat().st_mode) == 0o700

            with pytest.raises(SessionError, match="not that of this question"):
                await tasks.answer(task, replace(question, token="x.y"), answer)
            with pytest.raises(SessionError, match="'always' is not allow or deny"):
                await tasks.answer(task, question, "always")
            await tasks.answer(task, question, answer, "not now" if answer == "deny" else "")
            await run
            with pytest.raises(SessionError, match="answered already"):
                await tasks.answer(task, question, answer)
            (resolved,) = [one.event for one in heard.drain() if isinstance(one.event, ApprovalResolved)]

        assert (tmp_path / "made.txt").exists() == (answer == "allow")
        assert (resolved.by, resolved.via, resolved.scope) == ("user", "another tui-agent", "once")
        assert resolved.note == ("not now" if answer == "deny" else "")
        idle = await found(tasks, lambda one: one.state == "idle")
        assert not idle.questions

    (closed,) = await tasks.list()
    assert closed.state == "closed"
    assert [one.suffix for one in sessions.iterdir() if one.stem == closed.id and one.is_file()] == [".jsonl"]
    with pytest.raises(SessionError, match="takes no answer"):
        await tasks.answer(task, question, answer)


async def test_a_session_without_a_run_makes_no_file_and_a_dead_one_is_closed(tmp_path: Path) -> None:
    async with FussyServer() as server:
        async with session_in(tmp_path, server) as bench:
            sessions = Locations.of_user().sessions_dir
            assert not list(sessions.glob("*.live"))
            await bench.agent.run("hello")
        (journal,) = sessions.glob("*.jsonl")
        assert not is_journal_open(journal)
        lost = {"pid": 1, "state": "waiting", "since": 1, "socket": "/nowhere", "questions": [{"token": "x"}]}
        journal.with_suffix(".live").write_text(json.dumps(lost))
        (task,) = await TaskList(sessions).list()
        assert (task.state, task.questions) == ("closed", ())

        journal.with_suffix(".live").rename(sessions / "copy.live")
        SessionStore(sessions).fork(task.id, new_id="copy")
        SessionStore(sessions).delete("copy")
        assert [one.name for one in sessions.glob("copy*")] == []

        async with session_in(tmp_path, server, resume=task.id) as bench:
            journal.with_suffix(".live").write_text("[not json")
            (task,) = await TaskList(sessions).list()
            assert task.state == "idle"
