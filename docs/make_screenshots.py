"""Makes README's pictures: plays the recordings of `docs/recordings` to the moments that are marked in them, and shows
the question about changes and the fleet screen with the sessions of their tests.

`python docs/make_screenshots.py` writes `docs/images/*.svg`, and PNG files beside them where resvg-py is installed and
`--png DIRECTORY` names a place for them. `docs/make_recordings.py` makes the recordings.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tui_agent.recording import read_recording
from tui_agent.ui.replay.replay_stage import Stage

IMAGES = Path(__file__).parent / "images"
RECORDINGS = Path(__file__).parent / "recordings"


def pictures() -> Iterator[tuple[str, str, str]]:
    """Each marked moment of each recording: its name, the screen as SVG, and its text."""
    for file in sorted(RECORDINGS.glob("*.jsonl")):
        recording = read_recording(file)
        stage = Stage(recording)
        try:
            for name, at in recording.marks.items():
                stage.play_to(at)
                yield name, stage.picture("tui-agent"), stage.text()
        finally:
            stage.close()
    yield "trial", *asyncio.run(trial_picture())
    yield "fleet", *asyncio.run(fleet_picture())


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
    from tests.ui.fleet.still_fleet import MemoryPort, busy_fleet

    fleet = busy_fleet().model_copy(update={"questions": ()})
    app = fleet_app(MemoryPort(fleet))
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
