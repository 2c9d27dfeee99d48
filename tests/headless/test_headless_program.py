"""The whole headless program as a process: a real agent, real pipes, real signals, real journals."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.forked_program import PipedProgram
from tests.support.table import table
from tests.support.transcript_checks import validate_events, validate_history
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.session import SessionStore, StoredSession

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


def kept(root: Path) -> StoredSession:
    """Return the saved session, which must be undamaged and valid."""
    session = SessionStore(root / "sessions").load("one")
    assert (session.problems, session.unfinished.closing) == ((), ())
    validate_history(session.messages)
    return session


def events_of(output: str) -> list[Envelope]:
    """Return the events of a stream."""
    assert output.endswith("\n")
    envelopes = [read_envelope(line) for line in output.split("\n")[:-1]]
    return [envelope for envelope in envelopes if envelope is not None]


def test_text(tmp_path: Path) -> None:
    assert run(tmp_path, scene="hello", prompt="hi") == (0, "Hello there.\n", "")
    assert [message.text for message in kept(tmp_path).messages] == ["hi", "Hello there."]


def test_json(tmp_path: Path) -> None:
    code, output, errors = run(tmp_path, scene="hello", prompt="hi", output="json")

    result = json.loads(output)
    assert (code, errors) == (0, "")
    assert result | {"duration_ms": 0} == {
        "session_id": "one",
        "result": "Hello there.",
        "is_error": False,
        "reason": "done",
        "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 0, "cache_write_tokens": 0},
        "cost_usd": None,
        "steps": 1,
        "tool_calls": 0,
        "duration_ms": 0,
    }


@pytest.mark.parametrize("deltas", [False, True])
def test_the_stream_is_the_journal(tmp_path: Path, deltas: bool) -> None:
    code, output, _ = run(tmp_path, scene="work", prompt="hi", output="stream-json", deltas=deltas)

    events = events_of(output)
    validate_events(events, gaps=not deltas)
    assert (events[0].type, events[-1].type) == ("session.created", "run.ended")
    left_out = set() if deltas else {"message.delta", "tool.output", "tool.update"}
    stored = [envelope for envelope in kept(tmp_path).envelopes if envelope.type not in left_out]
    assert [(one.seq, one.type) for one in events] == [(one.seq, one.type) for one in stored[: len(events)]]
    assert code == 4


def test_a_run_without_an_approver_exits_with_4(tmp_path: Path) -> None:
    code, output, errors = run(tmp_path, scene="work", prompt="hi")

    assert (code, output) == (4, "It is done.\n")
    assert "no approver is available here" in errors
    assert "a call needed approval, and no one could give it" in errors
    assert not (tmp_path / "effects").exists()


def test_a_client_can_approve(tmp_path: Path) -> None:
    with program(tmp_path, scene="work", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="hi")
        question = running.event("approval.requested")["data"]
        running.send(type="approval", request_id=question["request_id"], decision="approve", input={"trace": "mine"})
        assert running.event("run.ended")["data"]["final_text"] == "It is done."
        code, output, errors = running.finish()

    assert (code, output, errors) == (0, "", "")
    assert (tmp_path / "effects").read_text() == "mine\n"


def test_a_mode_change_resolves_open_requests(tmp_path: Path) -> None:
    with program(tmp_path, scene="work", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="hi")
        running.event("approval.requested")
        running.send(type="mode", mode="allow")
        assert running.event("approval.resolved")["data"]["by"] == "policy"
        assert running.finish()[0] == 0

    assert (tmp_path / "effects").read_text() == "x\n"


def test_the_end_of_the_input_denies_open_requests(tmp_path: Path) -> None:
    with program(tmp_path, scene="work", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="hi")
        running.event("approval.requested")
        code, output, _ = running.finish()

    assert code == 4
    assert events_of(output)[-1].type == "run.ended"
    assert not (tmp_path / "effects").exists()


def test_steering_and_one_run_after_another(tmp_path: Path) -> None:
    with program(tmp_path, scene="twice", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="first")
        running.send(type="user", text="also this")
        running.event("run.ended")
        code, _, _ = running.finish()

    assert code == 0
    assert [message.text for message in kept(tmp_path).messages] == ["first", "One.", "also this", "Two."]


@table(
    ("scene", "code", "words"),
    [
        ("overloaded", 75, "the scripted model failed"),
        ("no key", 1, "error: the key is not valid"),
        ("endless", 3, "the run ended early (max_steps)"),
    ],
)
def test_failures_have_their_codes_and_messages(tmp_path: Path, scene: str, code: int, words: str) -> None:
    ended, _, errors = run(tmp_path, scene=scene, prompt="hi", max_steps=3)

    assert ended == code
    assert words in errors
    assert "Traceback" not in errors
    kept(tmp_path)


@table("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_run_and_leaves_the_journal_valid(tmp_path: Path, number: signal.Signals) -> None:
    with program(tmp_path, scene="hang", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="hi")
        running.send(type="mode", mode="allow")
        running.event("permission.mode_changed")
        running.process.send_signal(number)
        code, output, errors = running.finish()

    assert (code, errors) == (130, "")
    last = events_of(output)[-1]
    assert (last.type, last.event.model_dump()["reason"]) == ("run.ended", "aborted")
    assert [message.role for message in kept(tmp_path).messages][:2] == ["user", "assistant"]


def test_a_signal_while_idle_ends_the_program(tmp_path: Path) -> None:
    with program(tmp_path, scene="hello", input="stream-json", output="stream-json") as running:
        running.event("session.created")
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 130

    assert SessionStore(tmp_path / "sessions").list() == ()


def test_a_closed_output_causes_no_traceback(tmp_path: Path) -> None:
    with program(tmp_path, scene="hang", input="stream-json", output="stream-json") as running:
        running.send(type="user", text="hi")
        running.event("run.started")
        running.stdout.close()
        running.send(type="mode", mode="allow")
        assert running.process.wait(PATIENCE) == 130
        assert running.stderr.read() == ""
    kept(tmp_path)


def test_a_blocked_reader_does_not_delay_a_signal(tmp_path: Path) -> None:
    with program(tmp_path, scene="chatty", prompt="hi", output="stream-json", deltas=True) as running:
        assert json.loads(running.stdout.readline())["type"] == "session.created"
        store = SessionStore(tmp_path / "sessions")
        while not (found := store.load("one")).messages or found.unfinished.closing:
            pass
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 130


def test_a_killed_program_resumes(tmp_path: Path) -> None:
    with program(tmp_path, scene="hang", input="stream-json", output="stream-json") as running:
        running.send(type="mode", mode="allow")
        running.send(type="user", text="hi")
        running.event("tool.started")
        running.send(type="user", text="typed before the end")
        running.event("steering.queued")
        running.process.kill()
        running.process.wait()
    session = SessionStore(tmp_path / "sessions").load("one")
    assert [call.fate for call in session.unfinished.calls] == ["outcome_unknown"]

    code, output, _ = run(tmp_path, scene="hello", prompt="go on", output="stream-json", resume=True)

    events = events_of(output)
    assert [events[0].type, events[1].type, events[-1].type] == ["session.loaded", "session.repaired", "run.ended"]
    messages = kept(tmp_path).messages
    assert [message.role for message in messages] == ["user", "assistant", "tool_result", "user", "user", "assistant"]
    assert "Outcome unknown" in messages[2].text
    assert [message.text for message in messages[3:]] == ["typed before the end", "go on", "Hello there."]
    assert code == 0


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
