"""Commands in trials, as users of the whole program see them: a command runs at once, and what it changed waits."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples import only_long
from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says
from .test_headless import Piped, piped
from .user_machine import UserMachine

pytestmark = pytest.mark.slow

FORMAT = "printf 'one\\n2\\n' > a.txt; printf 'x = 1\\n' > b.py; echo formatted"


def repository(machine: UserMachine) -> None:
    """Make the work directory a repository with one commit."""
    machine.file("a.txt", "one\ntwo\n")
    machine.file("b.py", "x=1\n")
    machine.file(".gitignore", "build/\n")
    identity = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (("init", "-qb", "main"), ("add", "."), (*identity, "commit", "-qm", "Begin")):
        subprocess.run(["git", *words], cwd=machine.work, check=True, capture_output=True)


def state(top: Path) -> dict[str, bytes]:
    """Return every file with its content."""
    return {str(path.relative_to(top)): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}


def keep(program: Piped, asked: dict[str, Any], *paths: str) -> None:
    """Answer a question about changes: keep some, or all."""
    chosen = {"input": {"paths": list(paths)}} if paths else {}
    program.tell(type="approval", request_id=asked["data"]["request_id"], decision="approve", **chosen)


def run(
    machine: UserMachine, command: str, *options: str, **arguments: Any
) -> tuple[subprocess.CompletedProcess[str], str]:
    """Run one command without anyone to ask; return the end of the program and what the model read."""
    script = [calls(call("bash", command=command, **arguments)), says("Done.")]
    with ServerThread(script) as server:
        done = machine.run("-p", *options, "do it", variables=server.environment)
        ((text, _),) = results_in(bodies_of(server)[1])
    return done, text


def test_a_command_that_changes_nothing_asks_nothing(machine: UserMachine) -> None:
    repository(machine)
    before = state(machine.work)
    commands = (
        "cat a.txt && grep -rn x . | sort | head -3",
        "python3 -c 'import json, sys; print(json.dumps(sys.version_info[0]))'",
        "for file in *; do wc -l $file; done; git status --short; git log --oneline",
        "echo scratch > /tmp/scratch && cat /tmp/scratch",
        "mkdir -p __pycache__ && echo x > __pycache__/a.pyc",
    )
    with ServerThread([*(calls(call("bash", command=command)) for command in commands), says("Done.")]) as server:
        done = machine.run("-p", "do it", variables=server.environment)
        bodies = bodies_of(server)

    assert (done.returncode, done.stdout) == (0, "Done.\n")
    for command, body in zip(commands, bodies[1:], strict=True):
        ((text, is_error),) = results_in(body)
        assert not is_error, (command, text)
        assert "discarded" not in text, (command, text)
    assert state(machine.work) == before
    started = [event["data"] for event in machine.events() if event["type"] == "tool.started"]
    assert [data["place"] for data in started] == ["trial"] * len(commands)
    assert not any(event["type"].startswith(("approval.", "changes.")) for event in machine.events())


@pytest.mark.parametrize("kept", [("a.txt", "b.py"), ("a.txt",), ()])
def test_what_is_not_kept_is_not_there_and_a_wrong_choice_keeps_the_question(
    machine: UserMachine, kept: tuple[str, ...]
) -> None:
    repository(machine)
    script = [calls(call("bash", command=FORMAT)), says("Done.")]

    with piped(machine, script, "format it") as (program, server):
        asked = program.hear("approval.requested")
        assert (machine.work / "a.txt").read_text() == "one\ntwo\n"
        if kept:
            keep(program, asked, "c.txt")
            assert "c.txt" in program.hear("error")["data"]["text"]
            keep(program, asked, *kept)
        else:
            request = asked["data"]["request_id"]
            program.tell(type="approval", request_id=request, decision="deny", note="not so")
        program.hear("run.ended")
        assert program.end() == 0
        ((text, is_error),) = results_in(bodies_of(server)[1])

    files = {file["path"]: file for file in asked["data"]["changes"]["files"]}
    assert {path: (file["added"], file["removed"]) for path, file in files.items()} == {"a.txt": (1, 1), "b.py": (1, 1)}
    assert "-two\n+2\n" in files["a.txt"]["diff"]
    assert (machine.work / "a.txt").read_text() == ("one\n2\n" if "a.txt" in kept else "one\ntwo\n")
    assert (machine.work / "b.py").read_text() == ("x = 1\n" if "b.py" in kept else "x=1\n")
    assert text.startswith("formatted")
    assert not is_error
    assert all((f"kept: {path}" in text or f", {path}" in text) for path in kept)
    assert ("not so" in text) is not kept
    changed = [event["data"] for event in machine.events() if event["type"] == "file.changed"]
    assert sorted(Path(data["path"]).name for data in changed) == sorted(kept)
    assert all(data["known"] and data["before"]["kept"] and data["after"]["kept"] for data in changed)


def test_plan_mode_runs_the_tests_and_keeps_nothing(machine: UserMachine) -> None:
    repository(machine)
    before = state(machine.work)

    done, text = run(machine, "echo passed; echo x > report.txt", "--permission-mode", "plan")

    assert done.returncode == 0
    assert text.startswith("passed")
    assert "discarded: report.txt" in text
    assert "plan mode" in text
    assert state(machine.work) == before


def test_a_rule_on_paths_governs_what_commands_do(machine: UserMachine) -> None:
    repository(machine)
    (machine.work / "secrets").mkdir()
    machine.file("secrets/key.txt", "hidden\n")
    rules = ("--deny=edit(secrets/**)", "--deny=read(secrets/**)", "--allow=edit(/b.py)")

    hidden = "python3 -c \"import os; print(open('sec' + 'rets/key.txt').read()); os.remove('sec' + 'rets/key.txt')\""

    done, text = run(machine, f"{FORMAT}; {hidden}", *rules)

    assert done.returncode == 4
    assert "hidden" not in text
    assert (machine.work / "b.py").read_text() == "x = 1\n"
    assert (machine.work / "a.txt").read_text() == "one\ntwo\n"
    assert (machine.work / "secrets/key.txt").read_text() == "hidden\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, *only_long(signal.SIGTERM)])
def test_a_layer_that_waits_survives_the_end_of_the_program(machine: UserMachine, number: signal.Signals) -> None:
    repository(machine)
    with piped(machine, [calls(call("bash", command=FORMAT))], "--session", "talk", "format it") as (program, _):
        before = program.hear("approval.requested")["data"]
        program.process.send_signal(number)
        program.process.wait()
    assert (machine.work / "a.txt").read_text() == "one\ntwo\n"

    with piped(machine, [says("Kept.")], "--resume", "talk") as (program, server):
        again = program.hear("approval.requested")
        keep(program, again)
        program.hear("run.ended")
        assert program.end() == 0
        ((text, _),) = results_in(bodies_of(server)[0])

    assert again["data"]["call_id"] == before["call_id"]
    assert again["data"]["changes"]["files"] == before["changes"]["files"]
    assert (machine.work / "a.txt").read_text() == "one\n2\n"
    assert text.startswith("formatted")
    assert sum(event["type"] == "tool.started" for event in machine.events()) <= 2
    trials = machine.home / ".local/state/tui-agent/trials"
    assert not list(trials.rglob("record.json"))
