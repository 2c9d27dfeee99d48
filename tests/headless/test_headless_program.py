"""The whole headless program as a process: a real agent, real pipes, real signals, real journals."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked_program import PipedProgram
from tests.support.table import table
from tests.support.transcript_checks import validate_history
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.session import SessionStore

pytestmark = pytest.mark.slow

PATIENCE = 60
REPOSITORY = Path(__file__).parents[2]


class Process:
    """A running program and its pipes."""

    def __init__(self, root: Path, chosen: dict[str, Any]) -> None:
        command = [sys.executable, "-m", "tests.headless.headless_program", str(root), json.dumps(chosen)]
        self.process = PipedProgram(command, cwd=REPOSITORY, environment=os.environ)
        self.stdin, self.stdout, self.stderr = self.process.stdin, self.process.stdout, self.process.stderr

    def send(self, **order: Any) -> None:
        self.stdin.write(json.dumps(order) + "\n")
        self.stdin.flush()

    def event(self, kind: str) -> dict[str, Any]:
        """Return the next event of this type."""
        for line in self.stdout:
            event = json.loads(line)
            if event["type"] == kind:
                return event
        raise AssertionError(f"the stream ended before {kind}: {self.stderr.read()}")

    def finish(self) -> tuple[int, str, str]:
        """Close its input; return its exit code, the rest of its output, and its standard error."""
        self.stdin.close()
        # Not `communicate`: that would miss what was read ahead with the lines before.
        output, errors = self.stdout.read(), self.stderr.read()
        return self.process.wait(PATIENCE), output, errors


@contextmanager
def program(root: Path, **chosen: Any) -> Iterator[Process]:
    """A process that does not outlive the test."""
    running = Process(root, chosen)
    guard = threading.Timer(PATIENCE, running.process.kill)
    guard.start()
    try:
        yield running
    finally:
        guard.cancel()
        running.process.kill()
        running.process.wait()
        for end in (running.stdin, running.stdout, running.stderr):
            end.close()


def run(root: Path, **chosen: Any) -> tuple[int, str, str]:
    """Run the program without input."""
    with program(root, **chosen) as running:
        return running.finish()


def events_of(output: str) -> list[Envelope]:
    """Return the events of a stream."""
    assert output.endswith("\n")
    envelopes = [read_envelope(line) for line in output.split("\n")[:-1]]
    return [envelope for envelope in envelopes if envelope is not None]


def test_a_mode_change_resolves_open_requests(tmp_path: Path) -> None:
    with program(tmp_path, scene="work", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="hi")
        running.event("approval.requested")
        running.send(type="mode", mode="allow")
        assert running.event("approval.resolved")["data"]["by"] == "policy"
        assert running.finish()[0] == 0

    assert (tmp_path / "effects").read_text() == "x\n"


@table("lines", [3, 9, 20, 41, 77, 150])
def test_events_that_were_written_survive_a_kill(tmp_path: Path, lines: int) -> None:
    with program(tmp_path, scene="endless", prompt="hi", output="stream-json") as running:
        read = [running.stdout.readline() for _ in range(lines)]
        running.process.kill()
        running.process.wait()
        read += [line for line in running.stdout if line.endswith("\n")]

    told = events_of("".join(read))
    session = SessionStore(tmp_path / "sessions").load("one")
    stored = {envelope.seq: envelope for envelope in session.envelopes}
    assert len(told) >= lines
    for envelope in told:
        assert stored[envelope.seq] == envelope
    validate_history(session.messages)
