"""Makes README's pictures: replays the sessions of `docs/recordings` up to chosen events, and shows the question about
changes and the fleet screen with the sessions of their tests.

`python docs/make_screenshots.py` writes `docs/images/*.svg`, and PNG files beside them where resvg-py is installed and
`--png DIRECTORY` names a place for them. `docs/make_recordings.py` makes the recordings.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tui_agent.protocol.events import AgentEvent, ApprovalResolved, SteeringQueued
from tui_agent.ui.app.replay_app import ReplayApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.replay.replay_screen import ReplayScreen
from tui_agent.ui.replay.replay_timeline import ReplayTimeline
from tui_agent.workbench.sessions.replay_source import read_source

IMAGES = Path(__file__).parent / "images"
RECORDINGS = Path(__file__).parent / "recordings"


MOMENTS: dict[str, tuple[str, tuple[int, int], type[AgentEvent] | None]] = {
    "narrow": ("narrow", (80, 24), ApprovalResolved),
    "running": ("wide", (120, 40), SteeringQueued),
    "approval": ("wide", (120, 40), ApprovalResolved),
    "tour": ("wide", (120, 40), None),
}
"""For each picture the recording, columns and rows, and the event before which it is taken; None for the end."""


def pictures() -> Iterator[tuple[str, str, str]]:
    """Each picture: its name, the screen as SVG, and a part of its text."""
    for name, (recording, size, event) in MOMENTS.items():
        yield name, asyncio.run(replayed_picture(RECORDINGS / f"{recording}.jsonl", size, event)), "shop"
    yield "trial", *asyncio.run(trial_picture())
    yield "fleet", *asyncio.run(fleet_picture())


async def replayed_picture(file: Path, size: tuple[int, int], event: type[AgentEvent] | None) -> str:
    """The screen of a session just before its first event of a kind, or at its end, as SVG."""
    source = read_source(file)
    timeline = ReplayTimeline(source.envelopes, source.stamps)
    at = timeline.length
    if event is not None:
        found = (number for number in range(len(timeline)) if isinstance(timeline.event(number).event, event))
        at = timeline.moments[next(found)] - 0.01
    app = ReplayApp(
        lambda options: ReplayScreen(
            timeline,
            replace(options, place=WorkingDirectory("~/shop", "main"), label="scripted demo, not a language model"),
            clock=lambda: 0.0,
        ),
        surroundings=TerminalEnvironment(reduced_motion=True),
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        app.replay.action_hide()
        app.replay.seek(at)
        while app.replay.play_state.looking:
            await pilot.pause()
        await pilot.pause(1.0)
        return app.export_screenshot(title="tui-agent")


async def trial_picture() -> tuple[str, str]:
    """The question about the changes of a command as SVG, and its title."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.ui.still import drawn, shown, still_app
    from tests.ui.trial_story import asking, formatted

    app = still_app(asking(formatted()), running=True)
    async with app.run_test(size=(120, 40)) as pilot:
        await shown(pilot)
        await drawn(pilot)
        return app.export_screenshot(title="tui-agent"), "Keep what black . changed?"


async def fleet_picture() -> tuple[str, str]:
    """The fleet screen as SVG, and its first word."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.ui.fleet.fleet_stage import fleet_app
    from tests.ui.fleet.still_fleet import MemoryFleet, busy_fleet

    fleet = busy_fleet().model_copy(update={"questions": ()})
    app = fleet_app(MemoryFleet(fleet))
    async with app.run_test(size=(110, 32)) as pilot:
        while not app.fleet.state.known:
            await pilot.pause()
        await pilot.pause()
        return app.export_screenshot(title="tui-agent"), fleet.name


def main() -> None:
    """Takes all pictures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--png", type=Path, help="also write PNG files into this directory")
    chosen = arguments.parse_args()
    os.environ["COLORTERM"] = "truecolor"
    IMAGES.mkdir(exist_ok=True)
    for name, picture, _ in pictures():
        (IMAGES / f"{name}.svg").write_text(picture, "utf-8")
    if chosen.png:
        import resvg_py

        chosen.png.mkdir(parents=True, exist_ok=True)
        for picture in IMAGES.glob("*.svg"):
            (chosen.png / f"{picture.stem}.png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_path=str(picture))))


if __name__ == "__main__":
    main()
