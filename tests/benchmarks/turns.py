"""Costs of a turn in the running app, early and late, and its share of memory.

Run by hand: `python -m tests.benchmarks.turns [PART …]`. Parts: `fresh` (a new session), `resumed` (a session of 1,000
turns and 10,000 calls). A turn is an answer with one call that reads a small file; four prompts ask for 50 turns each.
CPU is that of the whole program, screen included.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil

from tests.support.terminal import Terminal

from .resume import LAST_WORDS, make_session, typed_until_quiet, used_by
from .screen import started

PROMPTS, EACH = 4, 50


def script() -> list[dict[str, object]]:
    """Return the model's script: calls, and a last text for each prompt."""
    replies: list[dict[str, object]] = []
    for prompt in range(PROMPTS):
        for turn in range(EACH):
            call = {"type": "tool_use", "name": "read", "input": {"path": f"{prompt * EACH + turn}.txt"}}
            replies.append({"blocks": [{"type": "text", "text": "I look at the next one."}, call]})
        replies.append({"blocks": [{"type": "text", "text": f"THE-END-{prompt}"}]})
    return replies


@contextmanager
def app(journal: Path | None) -> Iterator[Terminal]:
    """Start the app in a directory with small files; with a journal, resume it."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work = home / "work"
        work.mkdir()
        for number in range(PROMPTS * EACH):
            (work / f"{number}.txt").write_text(f"line of {number}\n" * 5)
        options: tuple[str, ...] = ()
        if journal is not None:
            sessions = home / ".local" / "state" / "tui-agent" / "sessions"
            sessions.mkdir(parents=True, mode=0o700)
            (sessions / journal.name).write_bytes(journal.read_bytes())
            options = ("--resume", journal.stem)
        terminal, _ = stack.enter_context(started(home, *options, script=script(), work=work))
        terminal.wait_for(LAST_WORDS if journal is not None else "● ready", patience=120)
        yield terminal


def cost(journal: Path | None) -> dict[str, float]:
    """Return CPU milliseconds per turn of the first and the last prompt, and megabytes."""
    with app(journal) as terminal:
        process = psutil.Process(terminal.process.pid)
        typed_until_quiet(terminal, process)
        terminal.press("ctrl+c")
        begun = process.memory_info().rss
        turns: list[float] = []
        sizes: list[int] = []
        for prompt in range(PROMPTS):
            before = used_by(process)
            terminal.type("go on\r")
            terminal.wait_for(f"THE-END-{prompt}", patience=120)
            turns.append((used_by(process) - before) / EACH * 1000)
            sizes.append(process.memory_info().rss)
        terminal.read(2.0)
        idle = used_by(process)
        while terminal.read(5.0):
            idle = used_by(process)
        return {
            "CPU ms a turn, first 50": turns[0],
            "second 50": turns[1],
            "last 50": turns[-1],
            "last / second": turns[-1] / turns[1],
            "MB at rest": begun / 1e6,
            "+MB with the first 50": (sizes[0] - begun) / 1e6,
            "+MB with 150 more": (sizes[-1] - sizes[0]) / 1e6,
            "idle CPU % after": (used_by(process) - idle) / 5.0 * 100,
        }


def main(names: list[str]) -> None:
    """Run the parts and print one JSON line for each."""
    with tempfile.TemporaryDirectory() as directory:
        for name in names or ["fresh", "resumed"]:
            figures = cost(make_session(Path(directory)) if name == "resumed" else None)
            print(json.dumps({"part": name, **{key: round(value, 2) for key, value in figures.items()}}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
