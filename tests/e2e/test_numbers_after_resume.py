"""After `--continue`, panel and timeline give each call the number it had."""

import re
import signal

import pytest

from tests.support.server_thread import ServerThread

from .script import call, calls, says
from .user_machine import UserMachine


@pytest.mark.parametrize("way", ["kill", "quit"])
def test_after_continue_a_call_has_one_row_and_one_number_in_panel_and_timeline(machine: UserMachine, way: str) -> None:
    machine.file("a.txt", "alpha\n")
    script = [
        calls(call("read", path="a.txt")),
        calls(call("read", path="a.txt"), call("write", path="new.txt", content="x\n")),
        says("Done."),
    ]
    with ServerThread(script) as server:
        with machine.app_on(server) as app:
            app.ready()
            app.say("write it")
            app.wait_for_question("write")
            if way == "kill":
                app.process.send_signal(signal.SIGKILL)
                assert app.wait_for_end() == -signal.SIGKILL
            else:
                app.quit()
        machine.end_processes()

        with machine.app_on(server, "--continue") as app:
            app.wait_for_question("write")
            app.press("y")
            app.wait_for_words("Done.")
            app.wait_for_status("ready")
            panel = re.findall(r"│ +\S #(\d+) (read|write)", app.screen.text)
            timeline = re.findall(r"│ #(\d+) ", app.screen.text)
            app.quit()

    assert panel == [("1", "read"), ("2", "read"), ("3", "write")]
    assert timeline
    assert set(timeline) <= {"2", "3"}
