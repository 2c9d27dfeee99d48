"""Background commands in the program: the app, print mode, a killed program, and a resumed session."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.support.server_thread import ServerThread
from tests.tools.calls import eventually
from tests.tools.daemons import living_in

from .script import bodies_of, call, calls, results_in, says, step, until, words_in
from .user_machine import UserMachine

ALLOWED = ("--permission-mode", "allow")


@pytest.fixture(autouse=True)
def nothing_left(machine: UserMachine) -> Iterator[None]:
    """Kill the commands of a failed test."""
    yield
    for pid in living_in(machine.work):
        os.kill(pid, signal.SIGKILL)


def test_ends_are_reported_and_jobs_are_stopped_handed_over_and_detached(machine: UserMachine) -> None:
    command = f"echo listening; until [ -e {{0}} ]; do sleep 0.05; done; echo stopping; : {machine.tag}"
    first, second, third, fourth = (
        calls(call("bash", command=command.format(f"stop{number}"), run_in_background=True)) for number in range(1, 5)
    )
    script = [
        first,
        calls(
            call("bash", command="touch stop1; until [ -e go ]; do sleep 0.02; done"), call("bash", command="echo b")
        ),
        says("Both ran."),
        *(second, says("It runs.")),
        calls(call("agent", task="start it", context="fresh")),
        *(third, says("It runs, too.")),
        calls(call("bash", command="touch stop3"), until("ended")),
        says("I know."),
        *(fourth, says("It runs again.")),
    ]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        with step("an end while calls wait skips none of them"):
            app.say("start it")
            app.wait_for_words("bash_1 ended with exit code 0")
            (machine.work / "go").touch()
            app.wait_for_words("Both ran.")
            body = bodies_of(server)[-1]
            assert [text for text, _ in results_in(body)] == ["[no output]", "b"]
            assert "bash_1" in words_in(body)[-1]

        with step("the user stops one by name"):
            app.wait_for_status("ready")
            app.say("start another")
            app.wait_for_words("It runs.")
            app.wait_for_status("ready")
            app.say("/jobs stop bash_2")
            app.wait_for_words("bash_2 was stopped")
            assert living_in(machine.work) == [app.process.pid]

        with step("a job of a sub-agent is handed to the main agent"):
            app.say("have it started")
            app.wait_for_words("bash_3 ended with exit code 0")
            server.release("ended")
            app.wait_for_words("I know.")
            assert "bash_3" in words_in(bodies_of(server)[-1])[-1]

        with step("a detached command outlives the program"):
            app.wait_for_status("ready")
            app.say("start the last")
            app.wait_for_words("It runs again.")
            app.wait_for_status("ready")
            app.say("/jobs detach bash_4")
            app.wait_for_words("bash_4 runs on without tui-agent")
            app.quit()
            assert living_in(machine.work) != []
            (machine.work / "stop4").touch()
            assert eventually(lambda: living_in(machine.work) == [], 30)
