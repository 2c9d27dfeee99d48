"""`-p` as scripts use it: output, order of events, answers by id, and every exit code."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

from tests.support.forked_program import PipedProgram
from tests.support.server_thread import ServerThread

from .script import Reply, bodies_of, call, calls, fails, says, until, words_in
from .user_machine import UserMachine


def lines_of(text: str) -> list[dict[str, Any]]:
    """Return the objects of JSON lines; the last line must be complete."""
    assert not text or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


class Piped:
    """The program with pipes, controlled line by line."""

    def __init__(self, process: PipedProgram) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        """Events read so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()

    def tell(self, **order: object) -> None:
        """Write one command."""
        self.process.stdin.write(f"{json.dumps(order)}\n")
        self.process.stdin.flush()

    def hear(self, kind: str) -> dict[str, Any]:
        """Read until an event of this type."""
        for line in self.process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["type"] == kind:
                return self.events[-1]
        raise AssertionError(f"{kind} never came: {[event['type'] for event in self.events]}")

    def end(self) -> int:
        """Close the input, read the rest, and return the exit code."""
        self.process.stdin.close()
        self.events += [json.loads(line) for line in self.process.stdout]
        return self.process.wait()


@contextmanager
def piped(machine: UserMachine, script: list[Reply], *options: str) -> Iterator[tuple[Piped, ServerThread]]:
    """Start the program with both stream formats."""
    formats = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")
    with ServerThread(script) as server:
        process = machine.piped(*formats, *options, variables=server.environment)
        with Piped(process) as program:
            yield program, server


# --- output -----------------------------------------------------------------------------------------------------------


def test_the_stream_has_the_events_from_session_start_to_run_end(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [calls(call("read", path="a.txt")), says("Done.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "read it", "--output-format", "stream-json", variables=server.environment)

    events = lines_of(done.stdout)
    kinds = [event["type"] for event in events]
    assert (done.returncode, done.stderr) == (0, "")
    assert (kinds[0], kinds[-1]) == ("session.created", "run.ended")
    assert not {"message.delta", "tool.output", "tool.update"} & set(kinds)
    assert {"tool.queued", "tool.started", "tool.ended", "message.ended"} <= set(kinds)
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    assert " " not in done.stdout.split('"')[0]

    kept = machine.events()
    known = {event["seq"]: event for event in kept}
    assert all(known[event["seq"]] == event for event in events)


# --- commands ---------------------------------------------------------------------------------------------------------


def test_one_process_serves_one_run_after_another_steers_and_skips_an_invalid_line(machine: UserMachine) -> None:
    command = "echo begun; until [ -e gate ]; do sleep 0.05; done"
    script = [calls(call("bash", command=command)), says("Steered."), says("Followed."), says("Anew.")]
    with piped(machine, script, "--permission-mode", "allow", "--include-deltas") as (program, server):
        program.process.stdin.write("no json at all\n")
        program.tell(type="dance")
        program.tell(type="user", text="begin")
        assert program.hear("error")["data"]["context"] == {"line": 1}
        assert program.hear("error")["data"]["context"] == {"line": 2}
        program.hear("tool.output")
        program.tell(type="user", text="a correction")
        program.tell(type="follow_up", text="and then")
        program.hear("steering.queued")
        program.hear("steering.queued")
        (machine.work / "gate").touch()
        program.hear("run.ended")
        program.tell(type="user", text="something new")
        program.hear("run.ended")
        assert program.end() == 0
        _, second, third, fourth = bodies_of(server)

    assert words_in(second) == ["begin", "a correction"]
    assert words_in(third) == ["begin", "a correction", "and then"]
    assert words_in(fourth)[-1] == "something new"


def test_names_that_are_not_utf_8_stop_neither_the_run_nor_changed_settings(machine: UserMachine) -> None:
    script = [calls(until("named"), call("glob", pattern="**")), says("Done.")]
    settings = machine.home / ".config" / "tui-agent" / "config.toml"
    with piped(machine, script) as (program, server):
        program.tell(type="user", text="go")
        server.reached("named")
        for name in (b"\xff\xfe.txt", b"\xed\xa0\x80", b"a\nb", b"x" * 255):
            (machine.work / os.fsdecode(name)).touch()
        settings.parent.mkdir(parents=True)
        settings.write_text('[permissions]\nrules = [["deny", "bash(make:*)"]]\n', "utf-8")
        while program.hear("notice")["data"]["code"] != "settings_read":
            pass
        server.release("named")
        assert program.hear("tool.ended")["data"]["status"] == "ok"
        program.hear("run.ended")
        assert program.end() == 0


def test_exit_code_75_if_a_retry_later_may_help(machine: UserMachine) -> None:
    # The server demands a wait above the limit, so the program does not retry.
    busy = fails(529, "overloaded_error", **{"retry-after": "600"})
    with ServerThread([busy]) as server:
        done = machine.run("-p", "hello", variables=server.environment)
        assert len(bodies_of(server)) == 1

    assert (done.returncode, done.stdout) == (75, "")
    assert "529" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_exit_code_130_after_an_interrupt_and_no_process_is_left(machine: UserMachine, number: signal.Signals) -> None:
    command = f"setsid sleep {machine.tag}.1 & nohup sleep {machine.tag}.2 & echo begun; sleep {machine.tag}"
    script = [calls(call("bash", command=command))]
    with piped(machine, script, "--permission-mode", "allow", "--include-deltas") as (program, server):
        program.tell(type="user", text="sleep")
        program.hear("tool.output")
        os.kill(program.process.pid, number)
        assert program.end() == 130
        assert machine.processes() == []
        assert len(bodies_of(server)) == 1

    assert program.events[-1]["type"] == "run.ended"
    assert program.events[-1]["data"]["reason"] == "aborted"
    assert machine.events()[-1]["type"] in ("run.ended", "session.saved", "agent.destroyed")
