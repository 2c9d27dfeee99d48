"""Speed of resuming a long session: 1,000 turns with 10 calls each, and 50 MB of journal.

Run by hand: `python -m tests.benchmarks.resume [PART …]`. Parts: `load` (from the journal's bytes to events, and from
events to the conversation and its open calls), `screen` (from process start to the last text painted in a real pty, CPU
until then and until the whole past is loaded, keys meanwhile, memory after). Wall-clock figures are medians, CPU
figures
the lowest of several runs. `turns.py` measures later turns.
"""

import asyncio
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.session.real_agents import agent_for, bus_for, recorded
from tests.support.terminal import Terminal
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import call, reply
from tui_agent.session import SessionStore, read_journal

from .screen import key_time, of_several, started

RUNS = 3
TURNS, CALLS = 1_000, 10
FULL_SIZE = 50_000_000
LAST_WORDS = "The last words of all."

_ID = re.compile(r'(?<=")((?:[a-z]+_[0-9a-f]{16})|scripted_call_\d+|call_\d+)(?=")')


def one_turn(root: Path, width: int) -> list[str]:
    """Return the journal lines of a real run of one prompt: an answer with calls, their results, a last answer."""

    async def run() -> Path:
        session = SessionStore(root).create(root, "one")
        assert session.path is not None
        bus = bus_for(session)
        async with recorded(session, bus):
            session.announce(bus, "0")
            asked = (call("look", what=f"{number} {'x' * width}") for number in range(CALLS))
            words = "I looked at *everything* there is, and `all` of it was there.\n\n" * 4
            provider = ScriptedProvider((reply("Let me look.", *asked), words))
            await agent_for(session, bus, provider, root / "effects").run("look at ten things")
        return session.path

    return asyncio.run(run()).read_text().split("\n")[:-1]


def make_session(root: Path, size: int | None = None, turns: int = TURNS) -> Path:
    """Return a journal of this many turns with distinct ids, or of about `size` bytes."""
    width = 10
    if size is not None:
        with tempfile.TemporaryDirectory() as directory:
            plain = sum(len(line) for line in one_turn(Path(directory), width)) * turns
            wide = sum(len(line) for line in one_turn(Path(directory) / "wide", 1_000)) * turns
        width = max(10, int((size - plain) / (wide - plain) * 990))
    with tempfile.TemporaryDirectory() as directory:
        lines = one_turn(Path(directory), width)
    first = next(place for place, line in enumerate(lines) if '"type":"run.started"' in line)
    path = root / "long.jsonl"
    seq = 0
    with path.open("w") as file:
        for turn in range(turns + 1):
            for line in lines if turn == 0 else lines[first:]:
                seq += 1
                text = re.sub(r'"seq":\d+', f'"seq":{seq}', line, count=1).replace(
                    '"session_id":"one"', '"session_id":"long"'
                )
                text = _ID.sub(rf"\1t{turn}", text)
                if turn == turns:
                    text = text.replace("I looked at *everything* there is", LAST_WORDS)
                file.write(text + "\n")
    path.chmod(0o600)
    return path


def load(path: Path) -> dict[str, float]:
    """Return the seconds of each part of loading."""
    figures: dict[str, float] = {"MB": path.stat().st_size / 1e6}

    def timed(name: str, do: Callable[[], object]) -> None:
        begin, cpu = time.perf_counter(), time.process_time()
        do()
        figures[f"{name} s"] = time.perf_counter() - begin
        figures[f"{name} CPU s"] = time.process_time() - cpu

    timed("read", lambda: read_journal(path))
    store = SessionStore(path.parent)
    session = store.load(path.stem)
    figures["events"] = len(session.envelopes)
    timed("conversation", lambda: session.messages)
    timed("waiting", lambda: session.waiting)
    timed("left open", lambda: (session.unfinished, session.resumable_conversation))
    return figures


def screen(path: Path) -> dict[str, float]:
    """Resume in a terminal and return the figures."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        state = home / "state" / "tui-agent" / "sessions"
        state.mkdir(parents=True, mode=0o700)
        (state / path.name).write_bytes(path.read_bytes())
        terminal, _ = stack.enter_context(started(home, "--resume", path.stem, XDG_STATE_HOME=str(home / "state")))
        begin = terminal.started
        process = psutil.Process(terminal.process.pid)
        terminal.wait_for("─" * 20)
        first = time.perf_counter() - begin
        terminal.wait_for(LAST_WORDS, patience=120)
        words, painted = time.perf_counter() - begin, used_by(process)
        keys, quiet = typed_until_quiet(terminal, process)
        return {
            "first paint s": first,
            "last words s": words,
            "CPU until then s": painted,
            "echo while reading p50 ms": statistics.median(keys),
            "echo while reading max ms": max(keys),
            "quiet s": quiet - begin,
            "CPU s": used_by(process),
            "memory MB": process.memory_info().rss / 1e6,
        }


def used_by(process: psutil.Process) -> float:
    """Return the CPU seconds of a process so far."""
    times = process.cpu_times()
    return times.user + times.system


def typed_until_quiet(terminal: Terminal, process: psutil.Process) -> tuple[list[float], float]:
    """Type keys until the process spends a second on little more than showing them.

    Returns:
        Milliseconds of each key, and the time when that second began.
    """
    keys: list[float] = []
    last, since = used_by(process), time.perf_counter()
    while time.perf_counter() - since < 1.0:
        keys.append(key_time(terminal, "Ω"))
        time.sleep(0.1)
        used = used_by(process)
        if used - last > 0.03:
            since = time.perf_counter()
        last = used
    return keys, since


PARTS = {"load": load, "screen": screen}


def main(names: list[str]) -> None:
    """Run the parts and print one JSON line for each."""
    with tempfile.TemporaryDirectory() as directory:
        for size in (None, FULL_SIZE):
            path = make_session(Path(directory), size)
            for name in names or list(PARTS):
                runs = [PARTS[name](path) for _ in range(RUNS)]
                taken = {figure: of_several(figure, [run[figure] for run in runs]) for figure in runs[0]}
                print(json.dumps({"part": name, **taken}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
