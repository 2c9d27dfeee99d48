"""The list of tasks: sessions of other programs, answers to their questions, and the switch to a closed one."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ui.dialogs.test_diff_screen import pressing
from tests.ui.row_kit import HostApp
from tests.ui.stage import Clock
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import RunStarted, SessionCreated
from tui_agent.protocol.facts.page_facts import TaskFact, TaskQuestion
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.session.journal_writer import JournalWriter
from tui_agent.ui.dialogs.tasks_screen import TasksScreen
from tui_agent.workbench.live_session import LiveSession, TaskList

NOW = 1_700_000_000_000
ARGS = {"command": "rm -rf build\x1b[31m", "timeout": 5}
QUESTION = TaskQuestion("r1", "tui-agent: bash", "rm -rf build\nno rule", {"args": ARGS}, ("allow", "deny"), "t")
LONG = TaskQuestion("r2", "tui-agent: write", "write big.txt", {}, ("deny",), "t")
TASKS = (
    TaskFact("s1", "clean [b]up[/b]", "/work/shop", "main", "waiting", NOW - 65_000, 4321, "/s", (QUESTION,)),
    TaskFact("s2", "write the file", "/work/api", "", "waiting", NOW - 5_000, 4322, "/s", (LONG,)),
    TaskFact("s3", "run the tests", "/work/api", "fix", "running", NOW - 700_000, 4323),
    TaskFact("s4", "explain this project", "/work/shop", "main", "idle", NOW - 3_600_000, 4324),
    TaskFact("s5", "an older one", "/work/shop", "main", "closed", NOW - 90_000_000),
)


class Fixed:
    """Lists fixed sessions, and notes answers."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str]] = []

    async def list(self) -> tuple[TaskFact, ...]:
        return TASKS

    async def answer(self, task: TaskFact, question: TaskQuestion, answer: str, note: str = "") -> None:
        self.answers.append((question.request, answer))


class Host(HostApp):
    """Shows the page over some sessions."""

    def __init__(self, tasks: Any) -> None:
        super().__init__()
        self.clock, self.tasks, self.left = Clock(), tasks, list[str | None]()

    def on_mount(self) -> None:
        super().on_mount()
        self.push_screen(TasksScreen(self.tasks, "s4", clock=self.clock, now=lambda: NOW), self.left.append)


@pytest.mark.slow
def test_the_page_looks_as_it_should(snap_compare: Callable[..., Any]) -> None:
    assert snap_compare(Host(Fixed()), terminal_size=(120, 40), run_before=pressing("down", "up"))


async def test_keys_answer_twice_and_open_what_no_program_has_open() -> None:
    tasks = Fixed()
    app = Host(tasks)
    async with app.run_test(size=(120, 40)) as pilot:

        async def press(*keys: str) -> None:
            for key in keys:
                app.clock.now += 1
                await pilot.press(key)
                await app.workers.wait_for_complete()  # pyright: ignore[reportUnknownMemberType]
                await pilot.pause()

        await press("y")
        assert "y again allows rm -rf build" in said(app)
        await press("y")
        assert tasks.answers == [("r1", "allow")]
        await press("down", "y")
        assert "can only be denied" in said(app)
        await press("n", "n")
        assert tasks.answers[1:] == [("r2", "deny")]
        await press("down", "y", "y", "n", "n")
        assert len(tasks.answers) == 2
        await press("enter", "escape")
        assert not app.left
        await press("down", "down", "enter")
        assert app.left == ["s5"]


async def test_a_call_is_allowed_only_after_all_of_its_question_was_visible() -> None:
    tasks = Fixed()
    app = Host(tasks)
    async with app.run_test(size=(80, 16)) as pilot:
        for keys, expected in (("yy", []), (["enter", "escape", "y"], []), ("y", [("r1", "allow")])):
            for key in keys:
                app.clock.now += 1
                await pilot.press(key)
                await app.workers.wait_for_complete()  # pyright: ignore[reportUnknownMemberType]
                await pilot.pause()
            assert tasks.answers == expected, keys
            if keys == "yy":
                assert said(app) == "Not all of the question is visible: enter shows it."


@pytest.mark.slow
async def test_a_real_session_gets_its_answer_from_the_page(tmp_path: Path) -> None:
    request = ApprovalRequest(
        request_id="r1", call_id="c1", tool="bash", args={"command": "make"}, summary="make", digest="d", agent="main"
    )
    bus, journal = EventBus(Origin(session_id="other")), tmp_path / "other.jsonl"
    live = LiveSession(journal, "other", tmp_path, bus)
    async with JournalWriter(bus, journal) as writer, asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(live.serve())
        await asyncio.sleep(0)
        bus.publish(SessionCreated(id="other", path=str(journal), cwd=str(tmp_path), version="1"))
        bus.publish(RunStarted(input="build it", trigger="prompt", model="m", mode=PermissionMode.ASK))
        await writer.flush()
        asking = tasks.create_task(live.ask(request))
        app = Host(TaskList(tmp_path))
        async with app.run_test(size=(120, 40)) as pilot:
            screen = app.screen
            assert isinstance(screen, TasksScreen)
            while screen.selected is None or not screen.selected.questions:
                # The session announces its question from a thread.
                await screen._load()  # pyright: ignore[reportPrivateUsage]
                await pilot.pause(0.01)
            for _ in range(2):
                app.clock.now += 1
                await pilot.press("n")
            decision = await asking
        serving.cancel()
    assert isinstance(decision, ApprovalDecision)
    assert (decision.decision, decision.via) == ("deny", "another tui-agent")
    assert not journal.with_suffix(".live").exists()


def said(app: Host) -> str:
    screen = app.screen
    assert isinstance(screen, TasksScreen)
    return screen._message[0]  # pyright: ignore[reportPrivateUsage]
