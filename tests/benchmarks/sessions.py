"""Cost of the list of 1,000 sessions: `python -m tests.benchmarks.sessions [MEGABYTES]`, run by hand.

Writes 1,000 journals of 50 folders, together about 100 MB or the given size, and measures milliseconds of CPU of the
whole process, threads included: from opening the sessions screen to its first rows, until every session is listed and
counted, and for each key typed into the search until it is drawn, and for each step of the cursor with its preview.
Each figure is the lowest of some starts, since noise only adds to CPU. The first line is the first start in these
journals; at the others the numbers of messages are known. The last line is `tui-agent sessions list`. Goals: 150 ms
until the first rows, 30 ms a key.
"""

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from click.testing import CliRunner
from textual.pilot import Pilot

from tests.ui.app.saved_sessions import save
from tui_agent.cli.process.process_setup import end_start
from tui_agent.cli.subcommands.session_commands import sessions
from tui_agent.session.store import SessionStore
from tui_agent.ui.app.question_app import QuestionApp
from tui_agent.ui.app.session_screen import SessionScreen
from tui_agent.ui.app.themes import DEFAULT_THEME
from tui_agent.ui.text.line import Line
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue, SessionEntry

COUNT = 1_000
FOLDERS = 50
TOPICS = ("fix the failing price test", "write the docs", "explain the parser", "release 1.4", "speed up the start")
SEARCH = "price test 7"
STEPS = 10
STARTS = 5


def write_sessions(root: Path, folders: Path, megabytes: int) -> None:
    """Write the journals; most are small, each twentieth is large."""
    large = megabytes * 1_000_000 // (COUNT // 10)
    for number in range(COUNT):
        folder = folders / f"project-{number % FOLDERS}"
        folder.mkdir(parents=True, exist_ok=True)
        files = {f"src/file_{one}.py": (one, 1) for one in range(number % 7)}
        path = save(root, f"s{number:05}", folder, f"{TOPICS[number % 5]} {number}", minutes=number, files=files)
        lines = path.read_text("utf-8").splitlines(keepends=True)
        wanted = large if number % 20 == 0 else large // 20
        # Message lines repeat in the middle, as in a long conversation.
        middle = "".join(lines[2:-2])
        text = "".join([*lines[:2], middle * max(1, wanted // len(middle)), *lines[-2:]])
        path.write_text(text, "utf-8")


class ListApp(QuestionApp[str | None]):
    """Shows the list only."""


def cpu_ms(since: float) -> float:
    """Return the CPU time of the process since a moment, in milliseconds."""
    return round((time.process_time() - since) * 1_000, 1)


async def key(pilot: Pilot[str | None], name: str) -> float:
    """Press a key; return the CPU time until it is drawn and the app is idle."""
    before = time.process_time()
    await pilot.press(name)
    await pilot.pause()
    return cpu_ms(before)


async def measure(root: Path, folder: Path) -> dict[str, float]:
    """Open the screen and type."""
    app = ListApp(DEFAULT_THEME)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        before = time.process_time()
        screen = SessionScreen(SessionCatalogue(SessionStore(root), folder))
        drawn: list[float] = []
        row_of = screen.item_row

        def row(item: SessionEntry, place: int, width: int) -> Line:
            if not drawn:
                app.call_after_refresh(lambda: drawn.append(cpu_ms(before)))
                drawn.append(0.0)
            return row_of(item, place, width)

        screen.item_row = row
        app.push_screen(screen)
        while len(drawn) < 2:
            await asyncio.sleep(0.001)
        while screen.is_reading:
            await asyncio.sleep(0.005)
        await pilot.pause()
        read = cpu_ms(before)
        await pilot.press("tab")
        await pilot.pause()
        typed = [await key(pilot, "space" if one == " " else one) for one in SEARCH]
        await pilot.press("escape")
        steps: list[float] = []
        for _ in range(STEPS):
            moved = time.process_time()
            await pilot.press("down")
            while screen._is_previewing:
                await asyncio.sleep(0.005)
            steps.append(cpu_ms(moved))
    names = ("first rows ms", "all listed ms", "key median ms", "key slowest ms", "preview slowest ms")
    values = (drawn[1], read, statistics.median(typed), max(typed), max(steps))
    return dict(zip(names, values, strict=True))


def list_command(state: Path) -> dict[str, float]:
    """Run `tui-agent sessions list`."""
    os.environ["XDG_STATE_HOME"] = str(state)
    before = time.process_time()
    output = CliRunner().invoke(sessions, ["list"]).output
    return {"list command ms": cpu_ms(before), "rows": output.count("\n")}


def main(megabytes: int) -> None:
    """Print one JSON line for each start."""
    end_start()
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory)
        root, folders = state / "tui-agent" / "sessions", state / "folders"
        write_sessions(root, folders, megabytes)
        print(json.dumps(asyncio.run(measure(root, folders / "project-0"))), flush=True)
        starts = [asyncio.run(measure(root, folders / "project-0")) for _ in range(STARTS)]
        print(json.dumps({name: min(start[name] for start in starts) for name in starts[0]}), flush=True)
        print(json.dumps(list_command(state)), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
