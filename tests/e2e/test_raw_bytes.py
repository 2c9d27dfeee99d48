"""Bytes that reach the terminal if all data around the program is hostile (safety promise 17)."""

import re

import pytest

from tests.e2e.script import bodies_of, call, calls, says
from tests.e2e.user_machine import UserMachine
from tests.support.server_thread import ServerThread

EVIL = "[red]x[/] \x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\y\x1b]0;evil\x07\x9d2;evil\x9c\x1b[6n\x1bPevil\x1b\\\u202ez\u200b\x9b5m"
ACTING = ("\x1b]52", "\x1b]8;", "\x1b]0;", "\x1bP", "\x1b[6n", "\x9d", "\x9b", "\x9c", "\u202e", "\u200b")
TITLE = re.compile(rb"(?:(?:waiting for you|working) \xc2\xb7 )?[\w~/.-]+ \xc2\xb7 tui-agent")
"""Titles of the window: state, directory, program."""


@pytest.fixture
def hostile_machine(machine: UserMachine) -> UserMachine:
    """A folder with terminal control sequences in the names of its branch and files."""
    git = machine.work / ".git"
    git.mkdir()
    (git / "HEAD").write_text(f"ref: refs/heads/{EVIL}\n", "utf-8")
    machine.file(EVIL.replace("/", "-"), EVIL)
    machine.file("evil.txt", f"{EVIL}\n{EVIL}\n")
    return machine


def acting_in(raw: bytes) -> list[str]:
    """Return the injected control sequences that reached the terminal, and titles that the program never sets."""
    titles = re.findall(rb"\x1b\]2;(.*?)(?:\x07|\x1b\\)", raw, re.DOTALL)
    foreign = [title.decode("utf-8", "replace") for title in titles if not TITLE.fullmatch(title)]
    return [order for order in ACTING if order.encode() in raw] + foreign


def test_no_injected_control_sequence_reaches_the_terminal(hostile_machine: UserMachine) -> None:
    machine = hostile_machine
    looks = calls(
        call("read", path="evil.txt"), call("glob", pattern="*"), call("bash", command=f"echo '{EVIL}' | cat")
    )
    changes = calls(call("edit", path="evil.txt", old_string=EVIL, new_string=f"{EVIL}!", replace_all=True))
    script = [looks, changes, says(f"{EVIL}\n\n```\n{EVIL}\n```\n\n| {EVIL} |\n|--|\nAll told.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("look")
        app.wait_for_question("bash")
        app.press("y")
        app.wait_for_question("edit")
        app.press("w")
        app.wait_for("every rule and check")
        app.press("w")
        app.wait_until_gone("every rule and check")
        app.wait_until_armed("n no")
        app.press("n")
        app.wait_for_words("All told.")
        bodies_of(server)
        app.press("ctrl+q")
        assert app.wait_for_end() == 0

    assert acting_in(bytes(app.raw)) == []


def test_a_session_with_a_hostile_title_is_listed_and_chosen_safely(machine: UserMachine) -> None:
    with ServerThread([says(EVIL)]) as server:
        assert machine.run("-p", EVIL, variables=server.environment).returncode == 0
    listed = machine.run("sessions", "list")
    assert acting_in(listed.stdout.encode()) == []

    with ServerThread([]) as server, machine.app_on(server, "--resume") as app:
        app.wait_for("Resume which session?")
        app.press("enter")
        app.ready()
        app.press("up")
        app.wait_for(lambda screen: app.draft.startswith("[red]x"))
        app.press("ctrl+q")
        assert app.wait_for_end() == 0

    assert acting_in(bytes(app.raw)) == []
