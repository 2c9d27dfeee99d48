"""The key is only in memory and in requests, never on the screen, in files or in children (safety promise 9)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.script import call, calls, fails, says
from tests.e2e.user_machine import UserMachine
from tests.support.server_thread import ServerThread


def secrets_in(home: Path, canary: str) -> list[str]:
    """Return files of tui-agent that contain the key or that others can read."""
    found: list[str] = []
    for path in home.rglob("*"):
        ours = "tui-agent" in path.relative_to(home).parts
        if path.is_file() and canary.encode() in path.read_bytes():
            found.append(f"{path} holds the key")
        if ours and path.stat().st_mode & 0o077:
            found.append(f"{path} is open to others")
    return found


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_the_key_is_not_on_the_screen_in_files_or_in_children(machine: UserMachine) -> None:
    script = [calls(call("bash", command="env")), says("Seen."), fails(401, "authentication_error")]
    with ServerThread(script) as server:
        canary = server.environment["ANTHROPIC_AUTH_TOKEN"]
        variables = {**server.environment, "MY_SECRET": canary, "OTHER_TOKEN": canary}
        recording = machine.home / "recording.jsonl"
        with machine.app(
            *("--verbose", "--permission-mode", "allow", "--record", str(recording)), variables=variables
        ) as app:
            app.ready()
            app.say("show")
            app.wait_for_words("Seen.")
            app.say("again")
            app.wait_for_words("did not accept the key")
            bodies = str([request["body"] for request in server.requests])
            app.press("ctrl+q")
            assert app.wait_for_end() == 0

    assert "PATH=" in bodies, "the command did show its environment to the model"
    assert canary not in bodies
    assert canary.encode() not in bytes(app.raw)
    assert any(path != recording for path in machine.home.rglob("*.jsonl"))
    assert "Seen." in recording.read_text("utf-8")
    assert recording.stat().st_mode & 0o777 == 0o600
    assert secrets_in(machine.home, canary) == []


@pytest.mark.usefixtures("open_umask")
def test_everything_that_a_run_makes_is_private_under_any_umask(machine: UserMachine) -> None:
    machine.file("notes.txt", "before")
    edit = call("edit", path="notes.txt", old_string="before", new_string="after")
    shown = call("bash", command="env")
    script = [calls(call("read", path="notes.txt")), calls(edit), calls(shown), calls(shown), says("Done.")]
    with ServerThread(script) as server:
        variables = {**server.environment, "GH_TOKEN": "x", "DATABASE_URL": "x"}
        done = machine.run("-p", "go", "--permission-mode", "allow", variables=variables)

    assert done.stdout == "Done.\n"
    assert done.stderr.count("note: not set for commands: DATABASE_URL, GH_TOKEN") == 1
    assert [*machine.home.rglob("contents/*/*")], "the file before the change is kept"
    assert secrets_in(machine.home, "no such word") == []
