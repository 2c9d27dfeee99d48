"""A call that waits for approval yields to a message, and survives the end of its process: the resumed session asks
again and runs it."""

import signal

import pytest

from tests.support.examples import only_long
from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says, until, words_in
from .test_headless import WRITE, piped
from .user_machine import UserMachine


@pytest.mark.parametrize("number", [signal.SIGTERM, *only_long(signal.SIGKILL)])
def test_the_request_is_repeated_and_its_approval_writes_the_file(machine: UserMachine, number: signal.Signals) -> None:
    with piped(machine, [calls(WRITE)], "--session", "talk", "write it") as (program, _):
        before = program.hear("approval.requested")["data"]
        program.process.send_signal(number)
        program.process.wait()
    assert not (machine.work / "new.txt").exists()

    with piped(machine, [says("Written.")], "--resume", "talk") as (program, server):
        again = program.hear("approval.requested")["data"]
        program.tell(type="approval", request_id=again["request_id"], decision="approve")
        ended = program.hear("run.ended")["data"]
        assert program.end() == 0
        (asked,) = bodies_of(server)

    assert (again["call_id"], again["digest"]) == (before["call_id"], before["digest"])
    assert again["request_id"] != before["request_id"]
    assert (machine.work / "new.txt").read_text() == "x\n"
    assert (ended["reason"], ended["final_text"]) == ("done", "Written.")
    assert len(results_in(asked)) == 1


def test_the_dialog_is_shown_again_and_every_call_keeps_its_number(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    read = call("read", path="a.txt")
    with ServerThread([calls(read), calls(read, WRITE), says("Written.")]) as server:
        start = ("--session", "talk", "write it")
        for way in (signal.SIGKILL, "ctrl+q"):
            with machine.app_on(server, *start) as app:
                app.wait_for_question("write")
                if isinstance(way, str):
                    app.press("escape")
                    app.wait_until_gone("f no, because")
                    app.press(way)
                else:
                    app.process.send_signal(way)
                app.wait_for_end()
            assert not (machine.work / "new.txt").exists()
            machine.end_processes()
            start = ("--resume", "talk")

        with machine.app_on(server, "--continue") as app:
            app.wait_for_question("write")
            app.press("y")
            app.wait_for_words("Written.")
            app.wait_for_status("ready")
            app.wait_for_row(r"✔ read a\.txt · a\.txt")
            app.wait_for_call("✔", 3, "write")
            app.quit()

    assert (machine.work / "new.txt").read_text() == "x\n"


def test_rules_allowed_for_the_session_apply_after_a_resume(machine: UserMachine) -> None:
    with piped(machine, [calls(WRITE), calls(until("never"))], "--session", "talk", "write it") as (program, _):
        asked = program.hear("approval.requested")["data"]
        program.tell(type="approval", request_id=asked["request_id"], decision="approve", scope="session")
        program.hear("tool.ended")
        program.process.kill()
        program.process.wait()
    (machine.work / "new.txt").unlink()

    script = [calls(WRITE), says("Written again.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "--resume", "talk", "once more", variables=server.environment)

    assert (done.returncode, done.stdout) == (0, "Written again.\n")
    assert (machine.work / "new.txt").read_text() == "x\n"
    assert [event["data"]["text"] for event in machine.events() if event["type"] == "notice"] == [
        "Still allowed for this session: edit(/**)."
    ]


@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a resume"])
def test_a_message_sent_while_only_a_question_waits_is_delivered_at_once(machine: UserMachine, resumed: bool) -> None:
    if resumed:
        with piped(machine, [calls(WRITE)], "--session", "talk", "write it") as (program, _):
            program.hear("approval.requested")
            program.process.send_signal(signal.SIGTERM)
            program.process.wait()
    options = ("--resume", "talk") if resumed else ("--session", "talk", "write it")

    with piped(machine, [*([] if resumed else [calls(WRITE)]), says("As you like.")], *options) as (program, server):
        program.hear("approval.requested")
        program.tell(type="user", text="rather not")
        resolved = program.hear("approval.resolved")["data"]
        ended = program.hear("run.ended")["data"]
        assert program.end() == 0
        body = bodies_of(server)[-1]

    assert not (machine.work / "new.txt").exists()
    assert (resolved["decision"], resolved["by"]) == ("deny", "cancel")
    assert ended["final_text"] == "As you like."
    ((text, is_error),) = results_in(body)
    assert (text.startswith("Skipped due to queued user message."), is_error) == (True, True)
    assert words_in(body)[-1] == "rather not"
