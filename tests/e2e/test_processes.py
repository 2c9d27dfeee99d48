"""Processes of commands never outlive their call or the program, and those left by a killed program are found."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.examples import only_long
from tests.support.server_thread import ServerThread
from tests.tools.calls import eventually
from tests.tools.daemons import living_in

from .script import Reply, call, calls, says
from .user_machine import App, UserMachine

ALLOWED = ("--permission-mode", "allow")
LASTING = "echo all are there; setsid sleep {tag} & setsid sleep {tag}"
"""A command whose shell dies with a killed program, but whose children, which left its process group, do not."""


@pytest.fixture(autouse=True)
def nothing_left(machine: UserMachine) -> Iterator[None]:
    """Kill the daemons of a failed test."""
    yield
    for pid in living_in(machine.work):
        os.kill(pid, signal.SIGKILL)


# --- a killed program -------------------------------------------------------------------------------------------------


def kill(app: App) -> None:
    app.process.send_signal(signal.SIGKILL)
    assert app.wait_for_end() == -signal.SIGKILL


def lasting(machine: UserMachine) -> list[Reply]:
    command = LASTING.format(tag=machine.tag)
    return [calls(call("bash", command=command)), says("I take the next step.")]


def sleeping(machine: UserMachine) -> list[str]:
    return [line for line in machine.processes() if line.startswith("sleep ")]


def killed_while_it_ran(machine: UserMachine, server: ServerThread) -> None:
    with machine.app_on(server, *ALLOWED, "--session", "mine") as app:
        app.ready()
        app.say("start it")
        app.wait_for_row(r"^ +all are there")
        # The screen may be a moment ahead of the disk.
        app.wait_for(lambda _: any("process.started" in journal.read_text("utf-8") for journal in machine.journals))
        kill(app)


def test_processes_of_a_killed_program_are_named_on_resume_and_can_be_ended(machine: UserMachine) -> None:
    with ServerThread(lasting(machine)) as server:
        killed_while_it_ran(machine, server)
        assert eventually(lambda: len(sleeping(machine)) == 2, 30), "only the shell dies with the program"

        with machine.app_on(server, *ALLOWED, "--continue") as app:
            app.ready()
            app.wait_for_words("Still running since tui-agent was killed: echo all are there")
            app.wait_for_words("/jobs kill ends it.")
            app.say("/jobs kill 1")
            app.wait_for_words("No process 1 of an earlier tui-agent is running.")
            assert len(sleeping(machine)) == 2
            app.say("/jobs kill")
            app.wait_for_words("Ended: sleep (pid")
            assert sleeping(machine) == []
            app.say("/jobs")
            app.wait_for_words("No command of an earlier tui-agent is running.")
            app.quit()

        done = machine.run("-p", "go on", *ALLOWED, "--continue", variables=server.environment)
        assert (done.returncode, done.stdout) == (0, "I take the next step.\n")

    told = [event["data"] for event in machine.events() if event["type"] in ("warning", "notice")]
    assert [one["code"] for one in told] == ["left_running", "left_ended", "left_ended", "left_running"]


@pytest.mark.parametrize("moment", [0, 2, *only_long(1, 3)])
def test_wherever_a_headless_program_is_killed_its_commands_end_or_are_found(machine: UserMachine, moment: int) -> None:
    """Kill it at the first event of a call, at its start, when its process is recorded, and at its first output."""
    kinds = ("tool.queued", "tool.started", "process.started", "tool.output")
    with ServerThread(lasting(machine)) as server:
        options = ("--output-format", "stream-json", "--include-deltas", "--session", "mine")
        with machine.piped("-p", "start it", *ALLOWED, *options, variables=server.environment) as program:
            next(line for line in program.stdout if f'"type":"{kinds[moment]}"' in line)
            program.kill()
            program.stdout.read()

        ended = machine.run("sessions", "end-processes", "mine")

    assert ended.returncode == 0
    assert eventually(lambda: machine.processes() == [], 30)
