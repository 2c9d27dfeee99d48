"""Makes README's pictures: the real app with the offline model, driven through its guided tour.

`python docs/make_screenshots.py` writes `docs/images/*.svg`, and PNG files beside them where resvg-py is installed and
`--png DIRECTORY` names a place for them.
"""

import argparse
import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot

from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate
from tui_agent.permissions import PermissionPolicy, Rule
from tui_agent.permissions.shell import is_read_only_command
from tui_agent.protocol.bus import EventBus
from tui_agent.providers import DEMO_MODEL, AnthropicProvider
from tui_agent.providers.demo import DemoServer, copy_sample_project
from tui_agent.session import StoredSession
from tui_agent.tools import Workspace, default_tools
from tui_agent.ui.app import TuiAgentApp
from tui_agent.ui.bridge import AgentBridge
from tui_agent.ui.surroundings import Place, Surroundings

IMAGES = Path(__file__).parent / "images"
PATIENCE = 60.0
"""Seconds until a picture that does not come is an error."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: what is waited for, and what is done after it was taken."""

    name: str
    shows: str
    """Text that must stand on the screen."""
    then: tuple[str, ...] = ()
    """Keys."""


WIDE = (
    Picture("running", "1 running", (*"also show prices.py", "enter")),
    Picture("approval", "esc not now", ("y",)),
    Picture("tour", "● ready"),
)
NARROW = (Picture("narrow", "esc not now"),)


async def take(size: tuple[int, int], pictures: tuple[Picture, ...], directory: Path) -> None:
    """Runs the tour once in a window of this size and takes its pictures."""
    async with AsyncExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        shop = place / "shop"
        server = await stack.enter_async_context(DemoServer(sample_dir=shop))
        copy_sample_project(shop)
        provider = AnthropicProvider(DEMO_MODEL, auth_token=server.token, base_url=server.base_url)
        stack.push_async_callback(provider.aclose)
        session = StoredSession.unkept(shop)
        bus = EventBus(session.origin())
        session.announce(bus, "")
        workspace = Workspace(shop, spool_dir=place / "spool")
        loop = AgentLoop(
            AgentLoopConfig(
                provider=provider,
                tools=default_tools(workspace, is_read_only_command=lambda line: is_read_only_command(line, shop)),
                workspace=shop,
                bus=bus,
                policy=PermissionPolicy(shop, rules=[Rule.parse(*rule) for rule in server.rules]),
                gate=ApprovalGate(interactive=True),
            )
        )
        app = TuiAgentApp(
            AgentBridge(loop, bus),
            label="scripted demo, not a language model",
            place=Place("~/shop", "main"),
            surroundings=Surroundings(reduced_motion=True),
        )
        async with app.run_test(size=size) as pilot:
            await pilot.press(*"fix the failing test", "enter")
            for picture in pictures:
                await until(pilot, lambda picture=picture: picture.shows in text_of(app))
                (directory / f"{picture.name}.svg").write_text(app.export_screenshot(title="tui-agent"), "utf-8")
                await pilot.press(*picture.then)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Waits until the screen is as wanted and has settled."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await pilot.pause(0.05)
    await pilot.pause(0.6)


def text_of(app: TuiAgentApp) -> str:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


def main() -> None:
    """Takes all pictures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--png", type=Path, help="also write PNG files into this directory")
    chosen = arguments.parse_args()
    IMAGES.mkdir(exist_ok=True)
    os.environ["COLORTERM"] = "truecolor"
    asyncio.run(take((120, 40), WIDE, IMAGES))
    asyncio.run(take((80, 24), NARROW, IMAGES))
    if chosen.png:
        import resvg_py

        chosen.png.mkdir(parents=True, exist_ok=True)
        for picture in IMAGES.glob("*.svg"):
            (chosen.png / f"{picture.stem}.png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_path=str(picture))))


if __name__ == "__main__":
    main()
