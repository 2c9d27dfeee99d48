"""Rewinding in the whole app: a real agent with real tools and a real journal."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.events import Paste
from textual.pilot import Pilot

from tests.rewind.sessions import Kept, git_work_tree, kept_session
from tests.ui.stage import Clock
from tests.ui.still import bridge_to, notes
from tui_agent.protocol.facts.change_facts import ChangedFile
from tui_agent.protocol.facts.page_facts import REPORT_TOOL
from tui_agent.providers.scripted_provider import Call
from tui_agent.tools.findings_tool import FindingsTool
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.dialogs.diff_screen import DiffScreen
from tui_agent.ui.dialogs.review_findings_screen import FindingsScreen
from tui_agent.ui.dialogs.rewind_screen import RewindScreen
from tui_agent.ui.panel.call_detail_screen import CallDetailScreen
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.workbench.session_diff import SessionDiff

pytestmark = pytest.mark.slow

PATIENCE = 60.0
"""Seconds until a wait for threads and programs fails; generous for a busy machine."""


@dataclass
class Desk:
    """The app with a session, and a simulated user."""

    app: TuiAgentApp
    pilot: Pilot[None]
    kept: Kept
    clock: Clock

    async def until(self, happened: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not happened():
                await self.pilot.pause(0.005)

    async def say(self, text: str) -> None:
        self.app.post_message(Paste(text))
        await self.until(lambda: self.app.chat.entry.composer.text.endswith(text))
        await self.pilot.press("enter")

    async def press(self, *keys: str) -> None:
        """Press keys, each after the quiet moment and once the page is idle."""
        for key in keys:
            screen = self.app.screen
            if isinstance(screen, RewindScreen):
                await self.until(lambda screen=screen: not screen.at_work)
            for _ in range(3):
                await self.pilot.pause()
            self.clock.now += 1.0
            await self.pilot.press(key)

    @property
    def page(self) -> str:
        view = self.app.screen.query_one("#rewind-body", RowsView)
        return "\n".join(view.render_line(y).text.rstrip() for y in range(view.size.height))

    @property
    def conversation(self) -> list[str]:
        return [part.text for part in self.app.chat.body.conversation.transcript.parts]


@asynccontextmanager
async def at_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    root, clock = tmp_path / "shop", Clock()
    root.mkdir()
    git_work_tree(root, price_py="one\n")
    async with kept_session(root, tmp_path / "sessions") as kept:
        await kept.ask("add a line", Call("bash", {"command": "echo two >> price.py"}, "c1"))
        diff = SessionDiff(root, kept.rewinder, is_trusted=True)
        app = TuiAgentApp(
            bridge_to(kept.loop, kept.bus, rewind=kept.rewinder, diff=diff),
            ChatOptions(surroundings=TerminalEnvironment(reduced_motion=True, clock=clock)),
        )
        async with app.run_test(size=(120, 40)) as pilot:
            desk = Desk(app, pilot, kept, clock)
            await desk.until(lambda: "done" in " ".join(desk.conversation))
            yield desk


async def test_slash_rewind_shows_does_and_tells_and_is_undone_from_the_same_page(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        before = desk.conversation
        await desk.say("/rewind")
        await desk.until(lambda: isinstance(desk.app.screen, RewindScreen) and "add a line" in desk.page)
        await desk.press("enter")
        await desk.until(lambda: "changed back" in desk.page)
        assert "price.py" in desk.page
        await desk.press("enter")
        await desk.until(lambda: desk.app.screen is desk.app.chat)
        await desk.until(lambda: any("Rewound to before" in text for text in desk.conversation))
        assert desk.kept.state["price.py"][0] == "one\n"
        assert len(desk.conversation) == 1
        assert desk.app.chat.entry.composer.text == "add a line", "the words come back"

        desk.app.chat.entry.composer.clear()
        await desk.say("/rewind")
        await desk.until(lambda: isinstance(desk.app.screen, RewindScreen) and "↶ undo" in desk.page)
        await desk.press("enter", "enter")
        await desk.until(lambda: desk.app.screen is desk.app.chat)
        await desk.until(lambda: desk.conversation[:-1] == before)
        assert desk.kept.state["price.py"][0] == "one\ntwo\n"
        await desk.kept.check()


async def test_a_key_in_the_panel_or_on_the_page_of_a_call_undoes_it(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        desk.app.chat.body.panel.focus_list()
        desk.app.chat.body.panel.select("c1")
        await desk.press("enter")
        await desk.until(lambda: isinstance(desk.app.screen, CallDetailScreen))
        await desk.press("ctrl+u")
        await desk.until(lambda: isinstance(desk.app.screen, RewindScreen) and "price.py" in desk.page)
        await desk.press("escape")
        await desk.until(lambda: desk.app.screen is desk.app.chat)
        assert desk.kept.state["price.py"][0] == "one\ntwo\n"

        await desk.press("ctrl+u")
        await desk.until(lambda: isinstance(desk.app.screen, RewindScreen) and "price.py" in desk.page)
        await desk.press("enter")
        await desk.until(lambda: desk.app.screen is desk.app.chat)
        assert desk.kept.state["price.py"][0] == "one\n"
        assert "add a line" in " ".join(desk.conversation), "the conversation stays"


async def test_slash_diff_undoes_a_file_and_a_review_shows_its_findings(tmp_path: Path) -> None:
    async with at_desk(tmp_path) as desk:
        kept, app = desk.kept, desk.app
        await desk.say("/diff")
        await desk.until(lambda: isinstance(app.screen, DiffScreen) and isinstance(app.screen.selected, ChangedFile))
        screen = app.screen
        assert isinstance(screen, DiffScreen)
        await desk.until(lambda: screen.counts("undo_file"))
        await desk.press("ctrl+u", "ctrl+u")
        await desk.until(lambda: kept.state["price.py"][0] == "one\n")
        await desk.press("escape")
        await desk.until(lambda: app.screen is app.chat)
        row = "Undid the changes of price.py since the session began · /rewind undoes it"
        await desk.until(lambda: row in desk.conversation)
        assert not app.chat.state.files.files

        kept.loop.add_tool(FindingsTool())
        finding = {"file": "price.py", "line": 1, "text": "It is one."}
        await kept.ask("look", Call(REPORT_TOOL, {"findings": [finding]}, "c2"))
        await desk.until(lambda: isinstance(app.screen, FindingsScreen) and app.screen.selected is not None)
        await desk.press("escape")
        await desk.until(lambda: app.screen is app.chat)
        app.post_message(Paste("I type"))
        await desk.until(lambda: app.chat.entry.composer.text == "I type")
        await kept.ask("look again", Call(REPORT_TOOL, {"findings": []}, "c3"))
        await desk.until(lambda: app.chat.state.findings.items == ())
        await desk.until(lambda: any("/findings" in note for note in notes(app)))
        assert app.screen is app.chat
