"""Speed of the screen, measured from outside in a real pty.

Run by hand: `python -m tests.benchmarks.screen [PART …]`. Parts: `start` (first output, a typed key painted, CPU until
then), `first` (Enter until the first request's bytes, and the slowest key before, at several ages of the app), `echo`
(keys while idle, idle CPU, memory), `stream` (20,000 tokens at once: CPU and time until the last text is painted),
`typing` (a key every 250 ms while tokens arrive at 200 a second). Wall-clock figures are medians, CPU figures the
lowest of several runs; where possible, a minimal Textual app with a text area runs beside them.
"""

import json
import os
import re
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

import tui_agent
from tests.support.server_process import ServerProcess
from tests.support.terminal import Terminal

RUNS = 5
THIS_PACKAGE = {"PYTHONPATH": str(Path(tui_agent.__file__).parent.parent)}
"""Environment that makes the measured program the one this file belongs to."""
TOKENS = 20_000
HELD_KEY = 0.03
"""Seconds between the repetitions of a key that is held down."""

MINIMAL = """
from textual.app import App
from textual.widgets import Static, TextArea

class Minimal(App):
    def compose(self):
        yield Static("ready")
        yield TextArea()

    def on_mount(self):
        self.query_one(TextArea).focus()

Minimal().run()
"""


def words(count: int) -> str:
    """Return Markdown of this many tokens, with paragraphs, lists and code."""
    block = (
        "The parser reads one line and keeps *its place* in the file. " * 4 + "\n\n- first point\n- second `point`\n\n"
    )
    block += "```python\ndef area(width: int, height: int) -> int:\n    return width * height\n```\n\n"
    tokens = block.split(" ")
    return " ".join(tokens * (count // len(tokens) + 1))


@contextmanager
def started(
    home: Path, *options: str, script: Sequence[Mapping[str, Any]] = (), work: Path | None = None, **variables: str
) -> Iterator[tuple[Terminal, ServerProcess]]:
    """Start the agent in a pty, in its home or in `work`, with a scripted model in another process."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **THIS_PACKAGE, **variables}
    command = [sys.executable, "-m", "tui_agent", *options]
    with (
        ServerProcess(script, home) as server,
        Terminal(command, cwd=work or home, environment=environment | server.environment) as terminal,
    ):
        yield terminal, server


@contextmanager
def running(program: str, script: Sequence[Mapping[str, Any]] = ()) -> Iterator[Terminal]:
    """Start the agent or the minimal app in a pty, with its own home."""
    with tempfile.TemporaryDirectory() as directory:
        home, work = Path(directory), Path(directory, "work")
        work.mkdir()
        if program == "agent":
            with started(home, script=script, work=work) as (terminal, _):
                yield terminal
        else:
            environment = {"PATH": os.environ["PATH"], "HOME": directory}
            with Terminal([sys.executable, "-c", MINIMAL], cwd=work, environment=environment) as terminal:
                yield terminal


def cpu_of(terminal: Terminal) -> float:
    """Return the CPU seconds of the program so far."""
    times = psutil.Process(terminal.process.pid).cpu_times()
    return times.user + times.system


def start(program: str) -> dict[str, float]:
    """Measure from process start to first output and to a key typed at once; the terminal's own echo does not count."""
    with running(program) as terminal:
        begin = terminal.started
        terminal.type("q")
        terminal.wait_for(lambda _: b"\x1b" in terminal.raw)
        first = time.perf_counter() - begin
        terminal.wait_for(lambda screen: any(re.search(r"[›▊] q", line) for line in screen.lines))
        return {"first output s": first, "key painted s": time.perf_counter() - begin, "CPU s": cpu_of(terminal)}


APP_BEGINS = b"\x1b[?2026h"
"""First bytes that only the app writes: before them the prelude shows its page."""
AGES = (0.3, 1.0, 2.0, 5.0)
"""Seconds from the app's first frame to the first Enter."""


def first(_program: str) -> dict[str, float]:
    """Measure milliseconds from the first Enter to its request, and the slowest key before."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as home, socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        variables = {
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_AUTH_TOKEN": "x",
            "HOME": home,
            "PATH": os.environ["PATH"],
        }
        # The first start writes the page of the others.
        for age in (0.0, *AGES):
            command = [sys.executable, "-m", "tui_agent"]
            with Terminal(command, cwd=Path(home), environment=variables | THIS_PACKAGE) as terminal:
                terminal.wait_for(lambda _, raw=terminal.raw: APP_BEGINS in raw)
                end, slowest = time.perf_counter() + age, 0.0
                while time.perf_counter() < end - 0.05:
                    slowest = max(slowest, key_time(terminal, "Ω"))
                    time.sleep(max(0.0, min(0.03, end - time.perf_counter())))
                cpu = cpu_of(terminal)
                terminal.type("Ω\r")
                begin = time.perf_counter()
                connection, _ = server.accept()
                with connection:
                    connection.recv(1)
                    taken = (time.perf_counter() - begin) * 1000
            if age:
                figures |= {f"{age} s: request ms": taken, f"{age} s: key max ms": slowest, f"{age} s: CPU s": cpu}
    return figures


def echo(program: str) -> dict[str, float]:
    """Measure milliseconds from a key to its cell while idle, with keys as fast as one that is held down."""
    with running(program) as terminal:
        terminal.wait_for(lambda screen: "│" in screen.text or "▊" in screen.text or "ready" in screen.text)
        time.sleep(2.0)
        times: list[float] = []
        for _ in range(100):
            times.append(key_time(terminal, "Ω"))
            terminal.read(HELD_KEY)
        before = cpu_of(terminal)
        time.sleep(5.0)
        idle = (cpu_of(terminal) - before) / 5.0 * 100
        memory = psutil.Process(terminal.process.pid).memory_info().rss / 1e6
    return {**percentiles(times), "idle CPU %": idle, "memory MB": memory}


def key_time(terminal: Terminal, key: str) -> float:
    """Return the milliseconds until the screen shows one more of this key."""
    count = terminal.screen.text.count(key)
    begin = time.perf_counter()
    terminal.type(key)
    terminal.wait_for(lambda screen: screen.text.count(key) > count)
    return (time.perf_counter() - begin) * 1000


def percentiles(times: list[float]) -> dict[str, float]:
    """Return median and 95th percentile, in the given unit."""
    return {"echo p50 ms": statistics.median(times), "echo p95 ms": statistics.quantiles(times, n=20)[-1]}


def stream(program: str) -> dict[str, float]:
    """Stream 20,000 tokens as fast as possible."""
    text = words(TOKENS) + "\n\nTHE-END"
    with running(program, [{"blocks": [{"type": "text", "text": text}], "piece": 5}]) as terminal:
        terminal.wait_for("● ready")
        time.sleep(3.0)
        before, begin, written = cpu_of(terminal), time.perf_counter(), len(terminal.raw)
        terminal.type("go\r")
        terminal.wait_for("THE-END", patience=120)
        seconds = time.perf_counter() - begin
        memory = psutil.Process(terminal.process.pid).memory_info().rss / 1e6
        figures = {"to the last text s": seconds, "CPU s": cpu_of(terminal) - before, "memory MB": memory}
        return {**figures, "MB to the terminal": (len(terminal.raw) - written) / 1e6}


def typing(program: str) -> dict[str, float]:
    """Type a key every 250 ms for a minute while tokens arrive at 200 a second."""
    script = [{"blocks": [{"type": "text", "text": words(TOKENS)}], "piece": 5, "pace": 0.005}]
    times: list[float] = []
    with running(program, script) as terminal:
        terminal.wait_for("● ready")
        time.sleep(3.0)
        terminal.type("go\r")
        terminal.wait_for("parser")
        before, begin, written = cpu_of(terminal), time.perf_counter(), len(terminal.raw)
        while time.perf_counter() - begin < 30:
            deadline = time.perf_counter() + 0.25
            times.append(key_time(terminal, "Ω"))
            while time.perf_counter() < deadline:
                terminal.read(0.01)
        share = (cpu_of(terminal) - before) / (time.perf_counter() - begin) * 100
        written = (len(terminal.raw) - written) / 1e6
    return {**percentiles(times), "echo max ms": max(times), "CPU %": share, "MB to the terminal": written}


PARTS = {
    "start": start,
    "first": first,
    "echo": echo,
    "stream": stream,
    "typing": typing,
}
COMPARED = {"start", "echo"}


def main(names: list[str]) -> None:
    """Run the parts and print one JSON line for each."""
    for name in names or PARTS:
        for program in ("agent", "minimal") if name in COMPARED else ("agent",):
            runs = [PARTS[name](program) for _ in range(1 if name == "typing" else RUNS)]
            taken = {figure: of_several(figure, [run[figure] for run in runs]) for figure in runs[0]}
            print(json.dumps({"part": name, "program": program, **taken}), flush=True)


def of_several(figure: str, values: list[float]) -> float:
    """Combine one figure of several runs: the lowest CPU time, since noise only adds to it, otherwise the median."""
    return round(min(values) if "CPU" in figure else statistics.median(values), 3)


if __name__ == "__main__":
    main(sys.argv[1:])
