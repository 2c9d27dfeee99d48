"""Time from the end of one answer to the next request, measured by the server, with the app in a real pty.

Run by hand: `python -m tests.benchmarks.rounds [MODE] [PART …]`. Parts: `prompts` (Enter until the request's arrival,
of later prompts), `reads` (four small reads), `commands` (one command that writes: from its last moment to the
request), `sleeps` (four times `sleep 1` in one answer), `writers` (the same, each with two files of its own). The app
runs in a small repository, in mode `allow`, where commands run outside and one after another, or in the mode named
first: with `accept_edits` they run in trials, beside one another. Figures are medians of several rounds in one app,
and the slowest round.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.server_process import ServerProcess
from tests.support.terminal import Terminal

from .screen import started

ROUNDS = 10
FILES = 100
"""Tracked files of the repository."""
NOW = "echo $EPOCHREALTIME"
MODES = ("accept_edits", "allow", "ask")
chosen_mode = ["allow"]

Block = dict[str, Any]


def command(text: str) -> Block:
    return {"type": "tool_use", "name": "bash", "input": {"command": text}}


def read(path: str) -> Block:
    return {"type": "tool_use", "name": "read", "input": {"path": path}}


def script(blocks: Callable[[int], Sequence[Block]], rounds: int) -> list[dict[str, Any]]:
    """Return a script that answers with the blocks of each round, and then with text."""
    replies = [{"blocks": list(blocks(number))} for number in range(rounds)]
    return [*replies, {"blocks": [{"type": "text", "text": "THE-END"}]}]


@contextmanager
def app(replies: list[dict[str, Any]]) -> Iterator[tuple[Terminal, ServerProcess]]:
    """Start the app in a repository with small files, and wait until everything is loaded."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work = home / "work"
        work.mkdir()
        for number in range(FILES):
            (work / f"{number}.txt").write_text(f"line of {number}\n" * 5)
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.com")
        for arguments in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "Begin")):
            subprocess.run(("git", *arguments), cwd=work, check=True)
        options = ("--permission-mode", chosen_mode[0])
        terminal, server = stack.enter_context(started(home, *options, script=replies, work=work))
        terminal.wait_for("● ready")
        terminal.read(3.0)
        yield terminal, server


def requests_of(blocks: Callable[[int], Sequence[Block]], rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Return the requests of one prompt whose answers have these blocks; no two rounds may be the same."""
    with app(script(blocks, rounds)) as (terminal, server):
        terminal.type("go\r")
        terminal.wait_for("THE-END", patience=120)
        return server.requests


def gaps(requests: Sequence[dict[str, Any]]) -> list[float]:
    """Return the milliseconds from the end of each answer to the arrival of the next request."""
    return [(later["at"] - before["answered_at"]) * 1000 for before, later in pairwise(requests)]


def printed(request: dict[str, Any]) -> float:
    """Return the time that the last command of a request's results printed, on the monotonic clock, in seconds."""
    result = request["body"]["messages"][-1]["content"][-1]["content"]
    text = result if isinstance(result, str) else "".join(block.get("text", "") for block in result)
    return float(text.split("[")[0].split()[0]) - (time.time() - time.monotonic())


def prompts() -> list[float]:
    with app([{"blocks": [{"type": "text", "text": f"THE-END-{number}"}]} for number in range(ROUNDS)]) as found:
        terminal, server = found
        begun: list[float] = []
        for number in range(ROUNDS):
            terminal.type("go on")
            # An Enter right behind letters may belong to a paste: the program waits 30 ms for more.
            time.sleep(0.5)
            begun.append(time.monotonic())
            terminal.type("\r")
            terminal.wait_for(f"THE-END-{number}")
            time.sleep(0.5)
        return [(one["at"] - begin) * 1000 for one, begin in zip(server.requests, begun, strict=True)][1:]


def reads() -> list[float]:
    return gaps(requests_of(lambda at: [read(f"{4 * at + place}.txt") for place in range(4)]))


def commands() -> list[float]:
    requests = requests_of(lambda at: [command(f"echo {at} > new.txt; sleep 0.3; {NOW}")])
    return [(one["at"] - printed(one)) * 1000 for one in requests[1:]]


def sleeps() -> list[float]:
    return gaps(requests_of(lambda at: [command(f"sleep 1; echo {at} {place}") for place in range(4)], 5))


def writers() -> list[float]:
    return gaps(
        requests_of(
            lambda at: [command(f"sleep 1; echo {at} > a{place}.txt; echo x > b{place}.txt") for place in range(4)], 5
        )
    )


PARTS: dict[str, Callable[[], list[float]]] = {
    "prompts": prompts,
    "reads": reads,
    "commands": commands,
    "sleeps": sleeps,
    "writers": writers,
}


def main(names: list[str]) -> None:
    """Run the parts and print one JSON line for each."""
    if names and names[0] in MODES:
        chosen_mode[0] = names.pop(0)
    for name in names or list(PARTS):
        taken = PARTS[name]()
        figures = {"median ms": statistics.median(taken), "lowest ms": min(taken), "slowest ms": max(taken)}
        print(json.dumps({"part": name, **{key: round(value, 1) for key, value in figures.items()}}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
