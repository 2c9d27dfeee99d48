"""The screen for another program's agent: it shows the run, asks for approvals, and can be subclassed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.ui.stage import PATIENCE
from tui_agent import Agent, AgentApp, ScriptedProvider, call, coding_tools, reply, tool
from tui_agent.ui.approval.approval_screen import ApprovalScreen
from tui_agent.ui.dialogs.text_page import help_text


@tool
async def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


async def until(pilot: Pilot[None], happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not happened():
            await pilot.pause()


@pytest.mark.slow
async def test_leaving_in_the_middle_of_a_run_leaves_the_conversation_whole() -> None:
    agent = Agent(ScriptedProvider([reply(call("pay", amount=3)), "Paid."]), tools=[pay])
    app = AgentApp(agent, prompt="Pay 3.")

    async with app.run_test(size=(100, 30)) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ApprovalScreen))
        app.exit()

    assert not agent.running
    assert [message.role for message in agent.history.messages()] == ["user", "assistant", "tool_result"]


@pytest.mark.slow
async def test_a_subclass_may_live_anywhere_and_have_keys_of_its_own(tmp_path: Path) -> None:
    source = (
        "from tui_agent import AgentApp\n"
        "class Own(AgentApp):\n"
        "    BINDINGS = [('f2', 'count', 'Count')]\n"
        "    counted = 0\n"
        "    def action_count(self):\n"
        "        self.counted += 1\n"
    )
    path = tmp_path / "own.py"
    path.write_text(source, "utf-8")
    module = ModuleType("own")
    module.__file__ = str(path)
    exec(compile(source, str(path), "exec"), module.__dict__)

    app = module.Own(Agent(ScriptedProvider(), workspace=tmp_path))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("f2")
        assert app.counted == 1
        assert app.chat.styles.layout is not None


@pytest.mark.slow
async def test_it_lists_only_what_its_agent_and_its_program_can_do(tmp_path: Path) -> None:
    def listed(app: AgentApp) -> str:
        return help_text(100, (), app.chat.commands.offers).plain

    said: list[str] = []

    class Noting(AgentApp):
        def notify(self, message: str, **options: Any) -> None:
            said.append(message)

    bare = Noting(Agent(ScriptedProvider()))
    async with bare.run_test(size=(100, 30)) as pilot:
        page = listed(bare)
        await until(pilot, lambda: bare.chat.entry.composer.has_focus)
        bare.chat.entry.composer.insert("!ls")
        await pilot.press("enter")
        await until(pilot, lambda: bool(said))
    coder = AgentApp(Agent(ScriptedProvider(), tools=coding_tools(), workspace=tmp_path))
    async with coder.run_test(size=(100, 30)):
        whole = listed(coder)

    missing = ("/settings", "/rewind", "/mcp", "/jobs", "/model", "/resume", "ctrl+b", "ctrl+r", "Undo the changes")
    missing += (
        "While rewinding",
        "In the list of sessions",
        "On the permissions page",
        "In a replay",
        "On the first page",
    )
    assert [text for text in missing if text in page or text in whole] == []
    assert [text for text in ("/init", "!COMMAND") if text in page] == []
    assert [text for text in ("/init", "!COMMAND", "/compact", "In the tool panel") if text not in whole] == []
    assert said == ["Nothing was done: the agent of this program has no tool `bash`."]
