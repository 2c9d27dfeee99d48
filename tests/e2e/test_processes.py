"""Processes of commands: none outlives its call or the program, and those of a killed program are found again."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.support.server_process import ServerProcess
from tests.tools.calls import eventually
from tests.tools.daemons import daemon, living_in, until_there

from .desk import PROGRAM, App, Desk
from .script import Reply, bodies_of, call, calls, results_in, says

pytestmark = pytest.mark.e2e

ALLOWED = ("--permission-mode", "allow")
LASTING = "echo all are there; sleep {tag} & sleep {tag}"
"""A command whose shell ends with a killed program, and whose first child does not."""


@pytest.fixture(autouse=True)
def nothing_left(desk: Desk) -> Iterator[None]:
    """End the daemons of a failed test."""
    yield
    for pid in living_in(desk.work):
        os.kill(pid, signal.SIGKILL)


def with_daemon(desk: Desk, then: str, name: str = "daemon") -> str:
    """Return a command that starts a daemon without any tie to it, waits until that runs, and continues."""
    return f"{daemon(desk.work, 'another title', name)}; {until_there(name)}; {then}"


def interrupt(app: App) -> None:
    app.press("escape")
    app.wait_for("esc again")
    app.press("escape")
    app.wait_for_status("interrupted · ready")


def cancel_call(app: App) -> None:
    app.say("@#1 not now")
    app.wait_for_words("It went on.")


def send_now(app: App) -> None:
    app.say("something else")
    app.wait_for_row("1 steer")
    app.press("ctrl+s")
    app.wait_for_words("It went on.")


def quit_app(app: App) -> None:
    app.press("ctrl+q")
    app.wait_for_end()


def told(number: signal.Signals) -> Callable[[App], None]:
    def end(app: App) -> None:
        app.process.send_signal(number)
        app.wait_for_end()

    return end


ENDINGS = {
    "cancelled": cancel_call,
    "interrupted": interrupt,
    "sent now": send_now,
    "quit": quit_app,
    "TERM": told(signal.SIGTERM),
    "HUP": told(signal.SIGHUP),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_daemon_ends_however_its_call_ends(desk: Desk, ending: str) -> None:
    command = with_daemon(desk, f"echo all are there; sleep {desk.tag}")
    script = [calls(call("bash", command=command)), says("It went on.")]
    with ServerProcess(script, desk.root) as server, desk.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("start it")
        app.wait_for_row(r"│ +all are there")
        assert len(living_in(desk.work)) > 2
        ENDINGS[ending](app)
        left = [pid for pid in living_in(desk.work) if pid != app.process.pid]
        assert left == []


def test_a_daemon_is_ended_and_named_after_a_successful_command(desk: Desk) -> None:
    script = [calls(call("bash", command=with_daemon(desk, "true"))), says("Done.")]
    with ServerProcess(script, desk.root) as server:
        done = desk.run("-p", "start it", *ALLOWED, variables=server.environment)
        ((text, is_error),) = results_in(bodies_of(server)[1])

    assert (done.returncode, done.stdout, is_error) == (0, "Done.\n", False)
    pid = int((desk.work / "daemon.pid").read_text())
    assert f"(pid {pid})" in text
    assert living_in(desk.work) == []


def test_a_command_of_the_user_leaves_no_daemon(desk: Desk) -> None:
    desk.file("start.sh", with_daemon(desk, f"echo all are there; sleep {desk.tag}"))
    with ServerProcess([], desk.root) as server, desk.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("!bash start.sh")
        app.wait_for_row(r"│ +all are there")
        app.press("escape")
        app.wait_for("esc again")
        app.press("escape")
        app.wait_until_gone("esc again")
        assert eventually(lambda: living_in(desk.work) == [app.process.pid], 30)
        app.press("ctrl+q")
        app.wait_for_end()


def started(desk: Desk, server: ServerProcess, *options: str) -> "subprocess.Popen[str]":
    """Start the program without a screen, with its events as a stream."""
    return subprocess.Popen(
        [str(PROGRAM), "-p", "start it", *ALLOWED, "--output-format", "stream-json", *options],
        cwd=desk.work,
        env={**desk.environment, **server.environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_daemon_of_a_running_command_is_left_alone(desk: Desk) -> None:
    first = with_daemon(desk, "until [ -e gate ]; do sleep 0.02; done", "first")
    second = f"until [ -s first.pid ]; do sleep 0.02; done; {with_daemon(desk, 'true', 'second')}"
    script = [calls(call("bash", command=first), call("bash", command=second)), says("Both are done.")]
    with ServerProcess(script, desk.root) as server, started(desk, server, "--strategy", "parallel") as program:
        assert program.stdout is not None
        next(line for line in program.stdout if '"type":"tool.ended"' in line)
        lasting = int((desk.work / "first.pid").read_text())
        ended = int((desk.work / "second.pid").read_text())
        assert lasting in living_in(desk.work)
        assert ended not in living_in(desk.work)
        (desk.work / "gate").touch()
        program.stdout.read()
        assert program.wait() == 0

    assert living_in(desk.work) == []


# --- a program that is killed -----------------------------------------------------------------------------------------


def kill(app: App) -> None:
    app.process.send_signal(signal.SIGKILL)
    assert app.wait_for_end() == -signal.SIGKILL


def lasting(desk: Desk) -> list[Reply]:
    command = LASTING.format(tag=desk.tag)
    return [calls(call("bash", command=command)), says("It goes on.")]


def sleeping(desk: Desk) -> list[str]:
    return [line for line in desk.processes() if line.startswith("sleep ")]


def killed_while_it_ran(desk: Desk, server: ServerProcess) -> None:
    with desk.app_on(server, *ALLOWED, "--session", "mine") as app:
        app.ready()
        app.say("start it")
        app.wait_for_row(r"│ +all are there")
        # The screen may be a moment ahead of the disk.
        app.wait_for(lambda _: any("process.started" in journal.read_text("utf-8") for journal in desk.journals))
        kill(app)


def test_the_shell_of_a_command_dies_with_a_killed_program(desk: Desk) -> None:
    command = f"trap '' TERM HUP; echo all are there; while :; do sleep 0.05; done; : {desk.tag}"
    with ServerProcess([calls(call("bash", command=command))], desk.root) as server:
        with desk.app_on(server, *ALLOWED) as app:
            app.ready()
            app.say("start it")
            app.wait_for_row(r"│ +all are there")
            kill(app)
        assert eventually(lambda: desk.processes() == [], 30)


def test_leftover_commands_are_named_on_resume_and_can_be_ended(desk: Desk) -> None:
    with ServerProcess(lasting(desk), desk.root) as server:
        killed_while_it_ran(desk, server)
        assert eventually(lambda: len(sleeping(desk)) == 2, 30), "only the shell is taken along"

        with desk.app_on(server, *ALLOWED, "--continue") as app:
            app.ready()
            app.wait_for_words("Still running since tui-agent was killed: echo all are there")
            app.wait_for_words("/jobs kill ends it.")
            app.say("/jobs kill 1")
            app.wait_for_words("No process 1 of an earlier tui-agent is running.")
            assert len(sleeping(desk)) == 2
            app.say("/jobs kill")
            app.wait_for_words("Ended: sleep (pid")
            assert sleeping(desk) == []
            app.say("/jobs")
            app.wait_for_words("No command of an earlier tui-agent is running.")
            app.quit()

        with desk.app_on(server, *ALLOWED, "--continue") as app:
            app.ready()
            app.say("go on")
            app.wait_for_words("It goes on.")
            app.quit()

    told = [event["data"] for event in desk.events() if event["type"] in ("warning", "notice")]
    assert [one["code"] for one in told] == ["left_running", "left_ended", "left_ended", "left_running"]


def test_a_leftover_daemon_is_found_too(desk: Desk) -> None:
    command = with_daemon(desk, f"echo all are there; sleep {desk.tag}")
    with ServerProcess([calls(call("bash", command=command)), says("It goes on.")], desk.root) as server:
        killed_while_it_ran(desk, server)
        pid = int((desk.work / "daemon.pid").read_text())
        assert pid in living_in(desk.work)

        done = desk.run("-p", "go on", "--continue", *ALLOWED, variables=server.environment)
        assert (done.returncode, done.stdout) == (0, "It goes on.\n")
        (warning,) = [line for line in done.stderr.splitlines() if "Still running" in line]
        assert f"pid {pid}" in warning
        assert warning.endswith("`tui-agent sessions end-processes mine` ends it.")

        ended = desk.run("sessions", "end-processes", "mine")
        again = desk.run("sessions", "end-processes", "mine")

    assert (ended.returncode, f"(pid {pid})" in ended.stdout) == (0, True)
    assert (again.returncode, again.stdout) == (0, "nothing of this session is running\n")
    assert living_in(desk.work) == []


@pytest.mark.parametrize("moment", range(4))
def test_commands_of_a_killed_headless_program_end_or_are_found(desk: Desk, moment: int) -> None:
    """It is killed when the call is queued, when it starts, when its process is known, and at its first output."""
    kinds = ("tool.queued", "tool.started", "process.started", "tool.output")
    with ServerProcess(lasting(desk), desk.root) as server:
        with started(desk, server, "--include-deltas", "--session", "mine") as program:
            assert program.stdout is not None
            next(line for line in program.stdout if f'"type":"{kinds[moment]}"' in line)
            program.kill()
            program.stdout.read()

        ended = desk.run("sessions", "end-processes", "mine")

    assert ended.returncode == 0
    assert eventually(lambda: desk.processes() == [], 30)


def test_a_process_with_a_reused_id_is_left_alone(desk: Desk) -> None:
    with ServerProcess(lasting(desk), desk.root) as server:
        killed_while_it_ran(desk, server)
        desk.end_processes()
        innocent = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            (journal,) = desk.journals
            (started,) = [event["data"] for event in desk.events() if event["type"] == "process.started"]
            text = journal.read_text("utf-8")
            journal.write_text(text.replace(f'"pid":{started["pid"]}', f'"pid":{innocent.pid}'), "utf-8")

            done = desk.run("-p", "go on", "--continue", *ALLOWED, variables=server.environment)
            ended = desk.run("sessions", "end-processes", "mine")

            assert (done.returncode, "Still running" in done.stderr) == (0, False)
            assert ended.stdout == "nothing of this session is running\n"
            assert psutil.Process(innocent.pid).is_running()
        finally:
            innocent.kill()
            innocent.wait()


def test_the_commands_of_a_session_that_is_open_are_not_offered(desk: Desk) -> None:
    script = [*lasting(desk), says("Only looked.")]
    with ServerProcess(script, desk.root) as server, desk.app_on(server, *ALLOWED, "--session", "mine") as app:
        app.ready()
        app.say("start it")
        app.wait_for_row(r"│ +all are there")
        app.wait_for(lambda _: any("process.started" in journal.read_text("utf-8") for journal in desk.journals))

        refused = desk.run("sessions", "end-processes", "mine")
        copied = desk.run("sessions", "fork", "mine").stdout.strip()
        ended = desk.run("sessions", "end-processes", copied)
        looked = desk.run("-p", "look", "--resume", "mine", "--no-session", *ALLOWED, variables=server.environment)

        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert ended.stdout == "nothing of this session is running\n"
        assert (looked.returncode, "Still running" in looked.stderr) == (0, False)
        assert os.path.exists(f"/proc/{app.process.pid}")
        assert len(sleeping(desk)) == 2
        interrupt(app)
        app.quit()
