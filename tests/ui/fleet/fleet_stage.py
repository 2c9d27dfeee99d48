"""The app of a fleet under a pilot."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from textual.pilot import Pilot

from tests.ui.fleet.still_fleet import NOW, MemoryFleet
from tests.ui.stage import PATIENCE, Clock
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.fleet.fleet_app import FleetApp, UnitChat
from tui_agent.ui.fleet.fleet_screen import FleetScreen


def fleet_app(files: MemoryFleet, clock: Callable[[], float] = lambda: 2_000.0, theme: str = "dark") -> FleetApp:
    """Return the app of a fleet whose clocks stand still."""
    surroundings = TerminalEnvironment(reduced_motion=True, clock=clock)
    return FleetApp(files, theme=theme, surroundings=surroundings, now=lambda: NOW)


@dataclass
class FleetStage:
    """The app and its driver."""

    app: FleetApp
    pilot: Pilot[None]
    files: MemoryFleet
    clock: Clock = field(default_factory=Clock)

    @property
    def fleet(self) -> FleetScreen:
        return self.app.fleet

    @property
    def chat(self) -> UnitChat:
        chat = self.app.chat
        assert isinstance(chat, UnitChat)
        return chat

    async def until(self, happened: Callable[[], object]) -> None:
        """Let the app work until a condition holds."""
        async with asyncio.timeout(PATIENCE):
            while not happened():
                await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        """Press keys, each after a quiet second, and let the answers among them take effect."""
        for key in keys:
            self.clock.now += 1.0
            await self.pilot.press(key)
            await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type a text, key by key."""
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    async def open(self) -> None:
        """Open the selected unit's conversation, and wait for its events."""
        await self.press("enter")
        await self.until(lambda: self.app.screen is self.app.chat and self.chat.state.begun)

    def text(self) -> str:
        """Return what the screen shows."""
        lines = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in lines)


@asynccontextmanager
async def fleet_stage(files: MemoryFleet, size: tuple[int, int] = (120, 40)) -> AsyncIterator[FleetStage]:
    """Run the app of a fleet headless until the block is left."""
    clock = Clock()
    app = fleet_app(files, clock)
    async with app.run_test(size=size) as pilot:
        stage = FleetStage(app, pilot, files, clock)
        await stage.until(lambda: files._first is None or app.fleet.state.known)
        yield stage
