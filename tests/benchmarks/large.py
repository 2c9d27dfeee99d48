"""Speed of steps in large places, and how it grows: `python -m tests.benchmarks.large [PART …]`, run by hand.

Parts: `files` (completion, grep, glob, `/diff` and a command in workspaces of 1,000 to 200,000 files, with git),
`big` (grep and read beside 2 GB of zeros and 1 GB of text, one line of 1 GB), `sessions` (list, continue and
statistics of 1,000 to 30,000 sessions), `journals` (resume of 1 to 100 MB), `lines` (the user's command line that
floods), `app` (in a pty: start, completion and a command in 200,000 files, `--continue` among 3,000 sessions and of an
18 MB journal), `flood` (1 GB of output: memory and key echo). All take about five minutes. The files are in a
directory of /tmp that is removed.

Each step is one JSON line: seconds by the clock, CPU seconds of the process and of programs it started, the longest CPU
time of one turn of the event loop, and the longest delay of a callback that wants to run every 2 ms. Steps of several
sizes end with a table and their growth: the slope of log(CPU) over log(size), where 1 is linear.
"""

import asyncio
import itertools
import json
import math
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.support.terminal import Terminal
from tests.tools.calls import call
from tests.ui.app.saved_sessions import MINUTE, NOW, save
from tui_agent.session.journal_counts import read_statistics
from tui_agent.session.store import SessionStore
from tui_agent.tools.glob_tool import GlobTool
from tui_agent.tools.grep_tool import GrepTool
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.workspace import Workspace
from tui_agent.workbench.session_diff import SessionDiff
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue
from tui_agent.workbench.user_commands import run_line
from tui_agent.workbench.workspace_completion import WorkspaceFiles

from .resume import LAST_WORDS, TURNS, make_session, used_by
from .screen import APP_BEGINS, key_time, started

SIZES = (1_000, 10_000, 100_000)
"""Files of the growth."""
MOST_FILES = 200_000
MANY_SESSIONS = 3_000
SESSIONS = (1_000, MANY_SESSIONS, 10_000, 30_000)
TURNS_A_MEGABYTE = 21
MEGABYTES = (1, 10, 18, 100)
"""Sizes of journals."""
GIGABYTE = 1_000_000_000
TICK = 0.002
"""Seconds between two callbacks of the probe."""
FOLDER = 100
"""Files of a folder."""


class LoopProbe:
    """Measures the event loop while a step runs: CPU of its longest turn, and the longest wait of a callback."""

    def __init__(self) -> None:
        self.turn = self.delay = 0.0

    async def watch(self) -> None:
        """Run until cancelled."""
        turn, last = time.thread_time(), time.perf_counter()
        while True:
            await asyncio.sleep(TICK)
            now, used = time.perf_counter(), time.thread_time()
            self.turn, self.delay = max(self.turn, used - turn), max(self.delay, now - last - TICK)
            turn, last = used, now


def cpu_used() -> float:
    """Return the CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


async def measured(step: Callable[[], Awaitable[object]]) -> dict[str, float]:
    """Run a step; return its figures."""
    probe = LoopProbe()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(probe.watch())
        await asyncio.sleep(0)
        begin, cpu = time.perf_counter(), cpu_used()
        await step()
        took, used = time.perf_counter() - begin, cpu_used() - cpu
        await asyncio.sleep(2 * TICK)
        watching.cancel()
    return {"s": took, "CPU s": used, "longest turn ms": probe.turn * 1000, "longest delay ms": probe.delay * 1000}


class Figures:
    """Prints each step, and then the growth of those with several sizes."""

    def __init__(self, part: str) -> None:
        self._part = part
        self._sizes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)

    def add(self, step: str, size: float, figures: dict[str, float]) -> None:
        """Print one line."""
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        shown = {name: round(value, 3) for name, value in {**figures, "peak MB": memory}.items()}
        print(json.dumps({"part": self._part, "step": step, "size": size, **shown}), flush=True)
        self._sizes[step].append((size, figures.get("CPU s", 0.0)))

    async def step(
        self, name: str, size: float, do: Callable[..., Awaitable[object]], *arguments: Any, **named: Any
    ) -> None:
        """Run, measure and print a step: an awaited function with its arguments."""
        self.add(name, size, await measured(lambda: do(*arguments, **named)))

    def growth(self) -> None:
        """Print a table of the steps with several sizes: CPU seconds of each, and the exponent."""
        rows = {step: points for step, points in self._sizes.items() if len(points) > 2}
        for sizes in dict.fromkeys(tuple(size for size, _ in points) for points in rows.values()):
            print(f"\n| {self._part}, CPU s | {' | '.join(f'{size:,}' for size in sizes)} | growth |")
            print("|---" * (len(sizes) + 2) + "|")
            for step, points in rows.items():
                if tuple(size for size, _ in points) == sizes:
                    exponent = slope(points)
                    cells = " | ".join(f"{used:.2f}" for _, used in points)
                    print(f"| {step} | {cells} | {'–' if exponent is None else f'{exponent:.1f}'} |", flush=True)


def slope(points: list[tuple[float, float]]) -> float | None:
    """Return the exponent of a power that fits these points; None if they do not differ. The clock counts in 0.01 s."""
    logs = [(math.log(size), math.log(max(value, 0.01))) for size, value in points]
    if len({x for x, _ in logs}) < 2:
        return None
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


# --- places -----------------------------------------------------------------------------------------------------------


def write_files(root: Path, first: int, last: int) -> None:
    """Write small files, a hundred in each folder, with the contents of a few."""
    for number in range(first, last):
        if number % FOLDER == 0:
            (root / f"area{number // 10_000}" / f"part{number // FOLDER}").mkdir(parents=True, exist_ok=True)
        path = root / f"area{number // 10_000}" / f"part{number // FOLDER}" / f"module_{number}.py"
        path.write_text(f"def function_{number % 50}(price):\n    return price * {number % 50}\n" * 5)


def commit(root: Path) -> None:
    """Let git track everything."""
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "gc.auto=0")
    for arguments in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "Begin")):
        subprocess.run(("git", *arguments), cwd=root, check=True)


def write_sparse(path: Path, size: int) -> None:
    """Write a file of zeros."""
    with path.open("wb") as file:
        file.truncate(size)


def write_repeated(path: Path, line: bytes, size: int) -> None:
    """Write a file of equal lines, or one long line."""
    block = line * (4_000_000 // len(line))
    with path.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)


@contextmanager
def without_ripgrep() -> Generator[None]:
    """Hide ripgrep, but not git."""
    with tempfile.TemporaryDirectory() as directory:
        for name in ("git", "bash"):
            os.symlink(str(shutil.which(name)), Path(directory) / name)
        path, os.environ["PATH"] = os.environ["PATH"], directory
        try:
            yield
        finally:
            os.environ["PATH"] = path


# --- parts ------------------------------------------------------------------------------------------------------------


async def files(top: Path, figures: Figures) -> None:
    """Measure completion, searches and git's list of changes."""
    root = top / "work"
    before = 0
    for size in (*SIZES, MOST_FILES):
        write_files(root, before, size)
        commit(root)
        before = size
        (root / "area0/part0/module_1.py").write_text("changed\n")
        found = WorkspaceFiles(root)
        await figures.step("@ first", size, found.find, "module_77")
        await figures.step("@ next letter", size, found.find, "module_777")
        await figures.step("@ one letter", size, found.find, "m")
        workspace = Workspace(root, spool_dir=top / "spool")
        grep, glob = GrepTool(workspace), GlobTool(workspace)
        for name in ("rg", "Python"):
            with ExitStack() as stack:
                if name == "Python":
                    stack.enter_context(without_ripgrep())
                for text in ("function_7", "nothing like this"):
                    what = "grep" if text[0] == "f" else "grep without match"
                    await figures.step(f"{what}, {name}", size, call, grep, pattern=text)
                await figures.step(f"glob, {name}", size, call, glob, pattern="**/module_7*.py")
        difference = SessionDiff(root, None, is_trusted=True)
        await figures.step("/diff tree", size, difference.files, "tree")


async def big(top: Path, figures: Figures) -> None:
    """Measure searches beside large files, and reading them."""
    root = top / "work"
    write_files(root, 0, 1_000)
    large = {"zeros": 2 * GIGABYTE, "text": GIGABYTE, "line": GIGABYTE}
    write_sparse(root / "zeros.bin", large["zeros"])
    write_repeated(root / "text.log", b"a line of an ordinary log with numbers 123456\n", large["text"])
    write_repeated(root / "line.txt", b"words without an end ", large["line"])
    workspace = Workspace(root, spool_dir=top / "spool")
    grep, read = GrepTool(workspace), ReadTool(workspace)
    names = ("zeros.bin", "text.log", "line.txt")
    for engine in ("rg", "Python"):
        with ExitStack() as stack:
            if engine == "Python":
                stack.enter_context(without_ripgrep())
            for kept in names:
                hidden = [name for name in names if name != kept]
                for name in hidden:
                    (root / name).rename(top / name)
                for text in ("function_7", "nothing like this"):
                    what = "grep" if text[0] == "f" else "grep without match"
                    await figures.step(f"{what} beside {kept}, {engine}", 1, call, grep, pattern=text)
                for name in hidden:
                    (top / name).rename(root / name)
    for name in names:
        await figures.step(f"read {name}", 1, call_or_error, read, path=name)
        await figures.step(f"read {name} from line 10,000,000", 1,
                           call_or_error, read, path=name, offset=10_000_000)  # fmt: skip
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(json.dumps({"part": "big", "largest program MB": round(children, 1)}), flush=True)


async def call_or_error(tool: Any, **arguments: Any) -> object:
    """Run a call that may refuse."""
    try:
        return await call(tool, **arguments)
    except Exception as error:
        return error


def write_sessions(root: Path, folders: Path, first: int, last: int) -> None:
    """Write journals of sessions in 50 folders, with the text of one."""
    text = save(root, "template", folders / "FOLDER", "TITLE", minutes=5).read_text()
    (root / "template.jsonl").unlink()
    for number in range(first, last):
        folder = folders / f"project-{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        of_this = text.replace("template", f"s{number:06}").replace("FOLDER", folder.name)
        of_this = of_this.replace("TITLE", f"fix the failing price test {number}")
        path, at = root / f"s{number:06}.jsonl", NOW + number * MINUTE
        path.write_text(re.sub(r'"ts":\d+', f'"ts":{at}', of_this))
        os.utime(path, ns=(at * 1_000_000, at * 1_000_000))


async def sessions(top: Path, figures: Figures) -> None:
    """Measure the list, `--continue` and statistics, each for the first time and again."""
    root, folders = top / "state" / "tui-agent" / "sessions", top / "folders"
    before = 0
    for size in SESSIONS:
        write_sessions(root, folders, before, size)
        before = size
        store = SessionStore(root)
        for time_ in ("first", "again"):
            await figures.step(f"list {time_}", size, listed, root, folders / "project-1")
            await figures.step(f"sessions list {time_}", size, asyncio.to_thread, store.list)
            await figures.step(f"continue {time_}", size, asyncio.to_thread, store.latest, folders / "project-1")
            await figures.step(f"/stats {time_}", size, asyncio.to_thread, statistics_of, store)


async def listed(root: Path, folder: Path) -> None:
    """Read the list as its screen does."""
    catalogue = SessionCatalogue(SessionStore(root), folder)
    entries = [entry async for batch in catalogue.read() for entry in batch if entry is not None]
    async for _ in catalogue.count(entries):
        pass


def statistics_of(store: SessionStore) -> object:
    """Read the statistics as `/stats` does."""
    return read_statistics(store.root, store.newest_paths())


async def journals(top: Path, figures: Figures) -> None:
    """Measure loading a journal as a resume does."""
    for size in MEGABYTES:
        root = top / str(size)
        root.mkdir()
        path = await asyncio.to_thread(make_session, root, None, size * TURNS_A_MEGABYTE)
        megabytes = round(path.stat().st_size / 1e6, 1)

        def load(path: Path = path) -> None:
            SessionStore(path.parent).load(path.stem).fold()

        await figures.step("resume: load and fold", megabytes, asyncio.to_thread, load)
        store = SessionStore(root)
        await figures.step("/stats", megabytes, asyncio.to_thread, statistics_of, store)


async def lines(top: Path, figures: Figures) -> None:
    """Measure a user's command line that writes as fast as it can."""

    async def flood() -> None:
        with suppress(TimeoutError):
            await run_line("yes", 2.0, folder=top)

    await figures.step("a status command that floods", 1, flood)


def seconds_until(terminal: Terminal, text: str) -> dict[str, float]:
    """Return the seconds since the start of the program until the screen shows a text, and its CPU seconds."""
    terminal.wait_for(text, patience=120)
    return {"s": time.perf_counter() - terminal.started, "CPU s": used_by(psutil.Process(terminal.process.pid))}


def keys_while(terminal: Terminal, seconds: float) -> dict[str, float]:
    """Type a key every 50 ms for a while."""
    keys: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        keys.append(key_time(terminal, "Ω"))
        terminal.read(0.05)
    return {"key p50 ms": statistics.median(keys), "key max ms": max(keys)}


def memory_of(terminal: Terminal) -> dict[str, float]:
    return {"RSS MB": psutil.Process(terminal.process.pid).memory_info().rss / 1e6}


def bash(command: str) -> dict[str, Any]:
    return {"blocks": [{"type": "tool_use", "name": "bash", "input": {"command": command}}]}


END = {"blocks": [{"type": "text", "text": "THE-END"}]}


async def app(top: Path, figures: Figures) -> None:
    """Measure the app, from outside, in a large workspace, with and without git, and with many sessions."""
    home, work = top / "home", top / "work"
    home.mkdir()
    state = {"XDG_STATE_HOME": str(home / "state")}
    write_files(work, 0, MOST_FILES)
    for place in ("without git", "with git"):
        if place == "with git":
            commit(work)
        commands = [bash(f"echo {number} > new.txt; echo {number}") for number in range(4)]
        with started(home, "--permission-mode", "accept_edits", script=[*commands, END], work=work, **state) as (
            terminal,
            server,
        ):
            terminal.wait_for(lambda _, raw=terminal.raw: APP_BEGINS in raw, patience=120)
            terminal.type("Ω")
            figures.add(f"start → a key, {place}", MOST_FILES, seconds_until(terminal, "Ω"))
            figures.add(f"start → ready, {place}", MOST_FILES, seconds_until(terminal, "● ready"))
            figures.add(f"keys after the start, {place}", MOST_FILES, keys_while(terminal, 3.0))
            terminal.write("\x15")
            for letters in ("@module_77", "7"):
                terminal.type(letters)
                begin = time.perf_counter()
                terminal.wait_for("module_777" if letters == "7" else "module_77.py", patience=120)
                figures.add(f"@: {letters} → names, {place}", MOST_FILES, {"s": time.perf_counter() - begin})
            terminal.press(*["backspace"] * len("@module_777"))
            terminal.type("go")
            terminal.read(1.0)
            terminal.type("\r")
            terminal.read(1.0)
            figures.add(f"keys during commands, {place}", MOST_FILES, keys_while(terminal, 3.0))
            terminal.wait_for("THE-END", patience=120)
            gaps = [(later["at"] - one["answered_at"]) for one, later in itertools.pairwise(server.requests)]
            figures.add(f"a command that writes, {place}", MOST_FILES, {"first s": gaps[0], "later s": min(gaps[1:])})
            figures.add(f"memory, {place}", MOST_FILES, memory_of(terminal))
    root = home / "state" / "tui-agent" / "sessions"
    shutil.rmtree(root)
    root.mkdir(parents=True, mode=0o700)
    write_sessions(root, top / "folders", 0, MANY_SESSIONS)
    for time_ in ("first", "again"):
        with started(home, "--continue", work=top / "folders" / "project-1", **state) as (terminal, _):
            figures.add(f"--continue, {time_}", MANY_SESSIONS, seconds_until(terminal, "fix the failing price test"))
    for name, turns in (("18 MB", 18 * TURNS_A_MEGABYTE), ("1,000 turns with 10,000 calls, 48 MB", TURNS)):
        await asyncio.to_thread(make_session, root, None, turns)
        with started(home, "--resume", "long", work=work, **state) as (terminal, _):
            figures.add(f"resume of {name}: last words", 1, seconds_until(terminal, LAST_WORDS))
            figures.add(f"… keys while it is read, {name}", 1, keys_while(terminal, 8.0) | memory_of(terminal))
        (root / "long.jsonl").unlink()


async def flood(top: Path, figures: Figures) -> None:
    """Measure keys and memory while a command writes 1 GB."""
    home, work = top / "home", top / "work"
    home.mkdir()
    work.mkdir()
    script = [bash(f"yes 'a line of the flood' | head -c {GIGABYTE}"), END]
    with started(home, "--permission-mode", "allow", script=script, work=work) as (terminal, _):
        terminal.wait_for("● ready")
        terminal.read(3.0)
        process = psutil.Process(terminal.process.pid)
        before, begin = used_by(process), time.perf_counter()
        terminal.type("go\r")
        terminal.wait_for("#1")
        keys: list[float] = []
        peak = 0.0
        while "THE-END" not in terminal.screen.text and time.perf_counter() - begin < 120:
            keys.append(key_time(terminal, "Ω"))
            peak = max(peak, process.memory_info().rss / 1e6)
            terminal.read(0.05)
        used = {"s": time.perf_counter() - begin, "CPU s": used_by(process) - before, "peak RSS MB": peak}
        echo = {"key p50 ms": statistics.median(keys), "key max ms": max(keys)}
        figures.add("1 GB of output", 1, used | echo)


PARTS: dict[str, Callable[[Path, Figures], Coroutine[Any, Any, None]]] = {
    "files": files,
    "big": big,
    "sessions": sessions,
    "journals": journals,
    "lines": lines,
    "app": app,
    "flood": flood,
}


def main(names: list[str]) -> None:
    """Run the parts, each in a process of its own, because memory counts."""
    if len(names) == 1:
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            figures = Figures(names[0])
            asyncio.run(PARTS[names[0]](Path(directory), figures))
            figures.growth()
        return
    for name in names or list(PARTS):
        subprocess.run([sys.executable, "-m", "tests.benchmarks.large", name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
