"""Commands in trials, as users of the whole program see them: a command runs at once, and what it changed waits."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says
from .test_headless import Piped
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
