"""The user switches between sessions inside the program."""

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, says, words_in
from .user_machine import UserMachine


def test_clear_begins_an_empty_session_and_resume_returns_to_the_first(machine: UserMachine) -> None:
    script = [says("First answer."), says("Second answer."), says("Third answer.")]
    with ServerThread(script) as server, machine.app_on(server, "--session", "one") as app:
        app.ready()
        app.say("first question")
        app.wait_for_words("First answer.")
        app.wait_for_status("ready")

        app.say("/clear")
        app.wait_for("/resume one returns to the one before, which is saved")
        app.wait_until_gone("First answer.")
        app.wait_for_status("ready")
        app.say("second question")
        app.wait_for_words("Second answer.")
        app.wait_for_status("ready")
        assert words_in(bodies_of(server)[-1]) == ["second question"]

        app.say("/resume one")
        app.wait_for_words("First answer.")
        app.wait_for_words("── session resumed")
        app.wait_for_status("ready")
        app.say("third question")
        app.wait_for_words("Third answer.")
        app.wait_for_status("ready")
        *_, last = bodies_of(server)
        app.quit()

    assert words_in(last) == ["first question", "third question"]
    assert len(machine.journals) == 2


def test_leaving_a_run_asks_first_and_its_queue_waits_in_its_session(machine: UserMachine) -> None:
    script = [calls(call("bash", command=f"echo begun; sleep {machine.tag}")), says("Never read.")]
    with (
        ServerThread(script) as server,
        machine.app_on(server, "--permission-mode", "allow", "--session", "one") as app,
    ):
        app.ready()
        app.say("sleep")
        app.wait_for_row(r"│ +begun")
        app.say("and dream")
        app.wait_for_row(r"1 steer  “and dream”")

        app.say("/clear")
        app.wait_for("Leave this session?")
        app.wait_until_armed("y leave it")
        app.press("y")
        app.wait_until_gone("Leave this session?")
        app.wait_for("/resume one returns to the one before")
        app.wait_for_status("ready")
        app.wait_for(lambda _: not machine.processes())

        app.say("/resume")
        app.wait_for("Resume which session?")
        app.wait_for_row(r"› now +sleep")
        app.press("enter")
        app.wait_for_row(r"1 steer  “and dream” +waits for you to send it")
        app.quit()
