"""After any exit the terminal is restored, and no process is left."""

import sys

import pytest

from tests.support.examples import sample
from tests.support.screen_buffer import ALTERNATE_SCREEN
from tests.support.server_thread import ServerThread

from .program_states import ALLOWED, STATES
from .script import call, calls, says, step
from .user_machine import NARROW, WIDE, App, UserMachine
from .ways_to_end import WAYS, end_it


@pytest.mark.parametrize(
    ("state", "way"),
    sample(
        [
            ("trust", "SIGTERM"),
            ("picker", "slept"),
            ("idle", "woken"),
            ("streaming", "SIGINT"),
            ("retrying", "asleep"),
            ("compacting", "SIGHUP"),
            ("question", "quit"),
            ("command", "slept"),
            ("rewind", "SIGINT"),
        ],
        2,
    ),
)
def test_every_exit_from_every_state_is_clean(machine: UserMachine, state: str, way: str) -> None:
    end_it(machine, STATES[state], WAYS[way])


def test_a_command_continues_while_the_program_is_suspended_and_the_screen_comes_back(machine: UserMachine) -> None:
    wait = "until [ -e go ]; do sleep 0.05; done; touch gone; echo all of it"
    script = [calls(call("bash", command=f"echo begun; {wait}")), says("It is done.")]
    with ServerThread(script) as server, machine.shell() as app:
        app.wait_for("shell>")
        settings = app.modes_after
        exports = " ".join(f"{name}={value}" for name, value in server.environment.items())
        app.type(f"{exports} tui-agent {' '.join(ALLOWED)}\r")
        app.ready()
        app.say("wait")
        app.wait_for_row(r"^ +begun")
        app.type("a draft")
        app.wait_for_draft("a draft")
        app.press("ctrl+z")
        app.wait_for("Stopped")
        app.wait_for(lambda screen: screen.lines[screen.row].startswith("shell>"))
        assert app.modes_after == settings
        assert ALTERNATE_SCREEN not in app.screen.modes
        app.type("touch go; until [ -e gone ]; do sleep 0.05; done; echo it is $((6 * 7))\r")
        app.wait_for("it is 42")
        app.type("fg\r")
        app.wait_for_words("It is done.")
        app.wait_for_draft("a draft")
        app.type(" goes on")
        app.wait_for_draft("a draft goes on")
        for number, suspend in enumerate(("\x1b[27;5;122~", "\x1b[122;5u")):
            with step(f"suspended by {suspend!r}"):
                app.write(suspend)
                app.wait_for(lambda screen: ALTERNATE_SCREEN not in screen.modes)
                app.wait_for(lambda screen, times=number + 2: screen.text.count("Stopped") == times)
                app.type("fg\r")
                app.wait_for_draft(f"a draft goes on{'!' * number}")
                app.write("!")
                app.wait_for_draft(f"a draft goes on!{'!' * number}")
        app.press("ctrl+q")
        app.wait_for(lambda screen: screen.lines[screen.row].startswith("shell>"))
        assert app.modes_after == settings
        app.type("exit\r")
        assert app.wait_for_end() == 0
        assert app.left_behind == []


def test_many_resizes_leave_a_complete_screen_and_the_end_leaves_none(machine: UserMachine) -> None:
    with machine.app("--demo", variables={"SAMPLE_TEST_SECONDS": "0.01"}) as app:
        app.ready()
        app.say("fix the failing test")
        app.wait_for_words("I made a fresh copy")
        # The run continues, and a dialog opens, while the window is resized.
        for step in range(60):
            app.resize(20 + step * 37 % 160, 6 + step * 13 % 50)
        app.resize(20, 6)
        app.wait_for("▲ Edit")
        app.resize(*NARROW)
        app.wait_for_question("edit")
        app.resize(*WIDE)
        app.wait_for("▲ Edit ")
        app.wait_for_call("▲", 5, "edit")
        app.wait_until_armed("n no")
        app.press("n")
        app.wait_for_words("you denied it")
        app.wait_for_status("ready")
        app.quit()
        assert app.screen.lines[1:] == [""] * 39, "the shell sees its own screen again"


NEVER_OPENS = """
import sys, threading
from tui_agent.ui.app import app_start, engine_runner
app_start.OPENING_SECONDS = 2.0
engine_runner.load_engine = lambda settings: threading.Event().wait()
from tui_agent.cli.command_line import run_program
sys.exit(run_program(sys.argv[1:]))
"""


def test_a_start_that_never_opens_its_session_ends_with_a_reason(machine: UserMachine) -> None:
    command = [sys.executable, "-c", NEVER_OPENS, "--demo"]
    with App(command, cwd=machine.work, environment=machine.environment) as app:
        app.wait_for("opening")
        app.type("half draft")
        assert app.wait_for_end() == 1
        assert "the session did not open within 2 s. Nothing was sent; your draft is kept." in app.screen.text
        assert ALTERNATE_SCREEN not in app.screen.modes
    with machine.app("--demo") as app:
        app.wait_for("half draft")
