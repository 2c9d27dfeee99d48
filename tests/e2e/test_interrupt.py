"""Interrupts end running calls with all their processes, restore the composer, and let the conversation continue."""

import psutil
import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says, text_block, until, words_in
from .user_machine import App, UserMachine

ALLOWED = ("--permission-mode", "allow")
MOST_MEMORY = 400_000_000
"""Maximum memory of the program in bytes, whatever the output."""


def interrupt(app: App) -> None:
    """Press both keys of an interrupt, the second one once the first has taken effect."""
    app.press("escape")
    app.wait_for("esc again")
    app.press("escape")
    app.wait_for_status("interrupted · ready")


def brood(tag: str) -> str:
    """Return a command that starts children in every way that hides them, and waits for them."""
    return (
        f"sleep {tag}.1 & nohup sleep {tag}.2 >/dev/null 2>&1 & setsid sleep {tag}.3 & "
        f"(setsid bash -c 'sleep {tag}.4 & sleep {tag}.5; true' &) ; bash -c \"trap '' TERM; sleep {tag}.6; true\" & "
        "echo all are there; wait"
    )


def test_an_interrupted_command_ends_with_all_its_descendants(machine: UserMachine) -> None:
    script = [calls(text_block("It takes long."), call("bash", command=brood(machine.tag))), says("We go on.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("start a brood")
        app.wait_for_row(r"│ +all are there")
        app.wait_for(lambda _: len(machine.processes()) >= 6)
        interrupt(app)
        assert machine.processes() == []
        app.wait_for_row(r"■ #1 bash")
        app.wait_for_words("── cancelled")

        app.say("and now")
        app.wait_for_words("We go on.")
        _, second = bodies_of(server)
        app.quit()

    content = second["messages"][-1]["content"]
    ((text, is_error),) = results_in(second)
    assert is_error
    assert "all are there" in text
    assert content[-1]["text"] == "and now"


def test_a_command_that_runs_too_long_is_ended_with_all_its_descendants(machine: UserMachine) -> None:
    script = [calls(call("bash", command=brood(machine.tag), timeout=3.0)), says("It took too long.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("start a brood")
        app.wait_for_words("It took too long.")
        app.wait_for_words("timed out")
        assert machine.processes() == []
        first, second = server.requests
        ((text, is_error),) = results_in(bodies_of(server)[1])
        app.quit()

    assert is_error
    assert "all are there" in text
    assert second["at"] - first["answered_at"] < 3.0 + 2.0 + 20.0, "the deadline, the grace, and a slow machine"


def test_a_flood_of_output_does_not_block_the_program(machine: UserMachine) -> None:
    script = [calls(call("bash", command=f"yes {machine.tag}")), says("It is quiet again.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("flood me")
        app.wait_for_row(rf"│ +{machine.tag}")
        for word in ("I ", "can ", "still ", "write"):
            app.type(word)
            app.wait_for(word.strip())
        app.wait_for_draft("I can still write")
        memory = psutil.Process(app.process.pid).memory_info().rss
        interrupt(app)
        assert memory < MOST_MEMORY
        assert machine.processes() == []
        app.press("enter")
        app.wait_for_words("It is quiet again.")
        _, second = bodies_of(server)
        app.quit()

    ((text, _),) = results_in(second)
    assert len(text) < 40_000
    (whole,) = machine.home.glob("**/*.files/*")
    assert str(whole) in text
    whole.unlink()
    assert sum(journal.stat().st_size for journal in machine.journals) < 5_000_000


def test_input_typed_while_a_command_ends_is_kept(machine: UserMachine) -> None:
    # The command ignores the first signal, so that its end takes a while.
    script = [calls(call("bash", command=f"trap '' TERM; echo deaf; sleep {machine.tag}"))]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("do not listen")
        app.wait_for_row(r"│ +deaf")
        app.press("escape")
        app.wait_for("esc again")
        app.press("escape")
        app.wait_until_gone("esc again")
        app.type("next I want")
        app.wait_for_draft("next I want")
        app.wait_for_status("interrupted · ready")
        app.wait_for_draft("next I want")
        bodies_of(server)
        app.press("ctrl+q")
        assert app.wait_for_end() == 0


def test_an_answer_can_be_interrupted(machine: UserMachine) -> None:
    script = [calls(text_block("The beginning of a"), until("never")), says("A new sentence.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("tell me a story")
        app.wait_for_words("The beginning of a")
        interrupt(app)
        app.say("a shorter one")
        app.wait_for_words("A new sentence.")
        _, second = bodies_of(server)
        app.quit()

    assert words_in(second) == ["tell me a story", "a shorter one"]


def test_an_open_dialog_closes_with_its_run(machine: UserMachine) -> None:
    script = [calls(call("write", path="new.txt", content="x\n")), says("Then not.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("write it")
        app.wait_for_question("write")
        app.press("escape")
        app.wait_for_row(r"▲ Create new\.txt\? .*ctrl\+y answer")
        interrupt(app)
        app.wait_until_gone("ctrl+y answer")
        app.say("never mind")
        app.wait_for_words("Then not.")
        _, second = bodies_of(server)
        app.quit()

    assert [is_error for _, is_error in results_in(second)] == [True]
    assert not (machine.work / "new.txt").exists()


def test_stop_lets_the_step_end_and_starts_no_other(machine: UserMachine) -> None:
    gate = machine.work / "gate"
    script = [calls(call("bash", command="echo working; until [ -e gate ]; do sleep 0.05; done")), says("Next step.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("work")
        app.wait_for_row(r"│ +working")
        app.press("escape")
        app.wait_for_row(r"esc again: cancel 1 tool and stop +· +s stop after this step")
        app.press("s")
        app.wait_until_gone("esc again")
        gate.touch()
        app.wait_for_row(r"✔ #1 bash")
        app.wait_for_status("stopped · ready")
        assert len(bodies_of(server)) == 1
        app.wait_for_draft("")
        app.say("go on")
        app.wait_for_words("Next step.")
        assert len(bodies_of(server)) == 2
        app.quit()


@pytest.mark.parametrize("way", ["ctrl+s", "n"])
def test_a_steering_message_can_be_sent_at_once(machine: UserMachine, way: str) -> None:
    script = [calls(call("bash", command=f"echo begun; sleep {machine.tag}")), says("I do that instead.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("sleep")
        app.wait_for_row(r"│ +begun")
        app.say("rather wake up")
        app.wait_for_row(r"1 steer  “rather wake up”")
        if way == "n":
            app.press("escape")
            app.wait_for("n send queued now")
        app.press(way)
        app.wait_for_words("I do that instead.")
        app.wait_until_gone("─ queue ─")
        assert machine.processes() == []
        _, second = bodies_of(server)
        app.quit()

    ((text, is_error),) = results_in(second)
    assert is_error
    assert "begun" in text
    assert words_in(second) == ["sleep", "rather wake up"]


def test_a_queued_message_survives_an_interrupt(machine: UserMachine) -> None:
    script = [calls(call("bash", command=f"echo begun; sleep {machine.tag}")), says("I heard you.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("sleep")
        app.wait_for_row(r"│ +begun")
        app.say("and hurry")
        app.wait_for_row(r"1 steer  “and hurry”")
        interrupt(app)
        app.wait_for_row(r"1 steer  “and hurry” +waits for you to send it")
        app.press("ctrl+s")
        app.wait_for_words("I heard you.")
        _, second = bodies_of(server)
        app.quit()

    assert words_in(second) == ["sleep", "and hurry"]


def test_ctrl_c_clears_then_interrupts_then_quits(machine: UserMachine) -> None:
    script = [calls(call("bash", command=f"echo begun; sleep {machine.tag}"))]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("sleep")
        app.wait_for_row(r"│ +begun")
        app.type("a draft")
        app.wait_for_draft("a draft")
        app.press("ctrl+c")
        app.wait_for_draft("")
        assert machine.processes() != []
        app.press("ctrl+c")
        app.wait_for_status("interrupted · ready")
        assert machine.processes() == []
        app.press("ctrl+c")
        app.wait_for("ctrl+c again quits")
        app.press("ctrl+c")
        assert app.wait_for_end() == 0
        assert app.left_behind == []
