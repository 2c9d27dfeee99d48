"""Makes the sessions that README's pictures are taken from: the real app with the offline model, on its guided tour.

`python docs/make_recordings.py` writes the journals `docs/recordings/*.jsonl`; `docs/make_screenshots.py` plays them.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from textual.pilot import Pilot
from textual.strip import Strip

from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate
from tui_agent.permissions import PermissionPolicy, Rule, is_read_only_command
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.permissions import Verdict
from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers import DEMO_MODEL, AnthropicProvider
from tui_agent.providers.demo import copy_sample_project, demo_server
from tui_agent.providers.demo.demo_server import DEMO_PACE
from tui_agent.session import JournalWriter, StoredSession
from tui_agent.tools import Workspace, default_tools
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions

RECORDINGS = Path(__file__).parent / "recordings"
LABEL = "scripted demo, not a language model"
PATIENCE = 60.0
"""Seconds until something that does not come is an error."""


RuleWords = tuple[Verdict, str]

QUESTION = "n no  f no, because"
"""Text that every question shows."""
LOOKS = 8
"""Unchanged looks at the screen after which it counts as at rest."""


def without_clocks(text: str) -> str:
    """Return a screen's text without times, and without the time strip, which grows by itself."""
    rows = text.split("\n")
    begins = next((number for number, row in enumerate(rows) if "│ model " in row), len(rows))
    kept = [row.partition("│")[0] if number >= begins else row for number, row in enumerate(rows)]
    return re.sub(r" *\d+(\.\d+)? s\b", " T", "\n".join(row.rstrip() for row in kept))


class Tour:
    """The app on its tour."""

    def __init__(self, app: TuiAgentApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    def strips(self) -> list[Strip]:
        """Return the screen, line by line."""
        screen = self.app.screen
        drawn = screen._compositor.render_update(full=True, screen_stack=self.app._background_screens)
        return [Strip.join(row) for row in drawn.strips]

    def text(self) -> str:
        """Return the text of the screen."""
        return "\n".join(strip.text.rstrip() for strip in self.strips())

    async def until(self, shows: str | Callable[[str], bool]) -> None:
        """Wait until the screen shows the text, or fulfils the condition."""
        async with asyncio.timeout(PATIENCE):
            while not (shows in self.text() if isinstance(shows, str) else shows(self.text())):
                await self.pilot.pause(0.05)

    async def question(self) -> None:
        """Wait until a question accepts answers: before that, its keys look like its text."""

        def counts() -> bool:
            row = next((row for row in self.strips() if QUESTION in row.text), Strip([]))
            start = max(0, row.text.find(QUESTION))
            parts = row.crop(start, start + len(QUESTION))
            return len({(part.style.color, part.style.bold) for part in parts if part.style is not None}) > 1

        async with asyncio.timeout(PATIENCE):
            while not counts():
                await self.pilot.pause(0.05)

    async def rests(self) -> str:
        """Waits until nothing of the screen changes any more but its clocks; gives what it shows without them."""
        same, before = 0, ""
        async with asyncio.timeout(PATIENCE):
            while same < LOOKS:
                await self.pilot.pause(0.05)
                now = without_clocks(self.text())
                same, before = (same + 1 if now == before else 0), now
        return before

    async def press(self, *keys: str) -> None:
        """Presses keys."""
        await self.pilot.press(*keys)


def agent_of(provider: ModelProvider, bus: EventBus, place: Path, rules: Sequence[RuleWords]) -> AgentLoop:
    """An agent with the real tools in the sample project."""
    shop = place / "shop"
    workspace = Workspace(shop, spool_dir=place / "spool")
    return AgentLoop(
        AgentLoopConfig(
            provider=provider,
            tools=default_tools(workspace, is_read_only_command=lambda line: is_read_only_command(line, shop)),
            workspace=shop,
            bus=bus,
            policy=PermissionPolicy(shop, rules=[Rule.parse(*rule) for rule in rules]),
            gate=ApprovalGate(interactive=True),
        )
    )


async def record(
    file: Path, size: tuple[int, int], place: Path, drive: Callable[[Tour], Awaitable[None]], *, pace: float = DEMO_PACE
) -> None:
    """Takes a tour.

    Args:
        file: the journal.
        size: columns and rows of the window.
        place: an empty directory for the tour.
        drive: what is done.
        pace: seconds between two words of the model.
    """
    async with AsyncExitStack() as stack:
        shop = place / "shop"
        server = await stack.enter_async_context(demo_server(sample_dir=shop, pace=pace))
        copy_sample_project(shop)
        model = AnthropicProvider(DEMO_MODEL, auth_token=server.token, base_url=server.base_url)
        stack.push_async_callback(model.aclose)
        session = StoredSession.ephemeral(shop)
        bus = EventBus(session.origin())
        await stack.enter_async_context(JournalWriter(bus, file))
        session.announce(bus, "")
        app = TuiAgentApp(
            AgentBridge(agent_of(model, bus, place, server.rules), bus),
            ChatOptions(
                WorkingDirectory("~/shop", "main"), label=LABEL, surroundings=TerminalEnvironment(reduced_motion=True)
            ),
        )
        async with app.run_test(size=size, notifications=True) as pilot:
            await drive(Tour(app, pilot))


async def wide(tour: Tour) -> None:
    """Watched, steered, approved."""
    await tour.press(*"fix the failing test", "enter")
    await tour.until("◐ bash")
    await tour.rests()
    await tour.press(*"also show prices.py", "enter")
    await tour.question()
    await tour.rests()
    await tour.press("y")
    # These tools have no trial: the last command of the tour asks before it runs.
    await tour.until("▲ Run")
    await tour.question()
    await tour.press("y")
    await tour.until("● ready")
    await tour.rests()


async def narrow(tour: Tour) -> None:
    """The question in a small window."""
    await tour.press(*"fix the failing test", "enter")
    await tour.question()
    await tour.rests()


@contextmanager
def empty_place() -> Generator[Path]:
    """A directory whose name tells nothing of this machine."""
    place = Path(tempfile.gettempdir()) / "tour"
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place)


def main() -> None:
    """Makes all recordings anew."""
    os.environ["COLORTERM"] = "truecolor"
    RECORDINGS.mkdir(exist_ok=True)
    for name, size, drive in (("wide", (120, 40), wide), ("narrow", (80, 24), narrow)):
        file = RECORDINGS / f"{name}.jsonl"
        file.unlink(missing_ok=True)
        with empty_place() as place:
            asyncio.run(record(file, size, place, drive))


if __name__ == "__main__":
    main()
