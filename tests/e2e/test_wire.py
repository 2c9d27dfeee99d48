"""The program with the real SDK over HTTP: broken streams, retries, and several calls in one answer."""

import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, fails, results_in, says, text_block, until
from .user_machine import UserMachine


def test_calls_that_touch_one_file_run_in_order_and_the_others_beside_them(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    machine.file("shared.txt", "old\n")
    script = [
        calls(
            text_block("I read, write and read again."),
            call("read", path="shared.txt"),
            call("write", path="shared.txt", content="new\n"),
            call("read", path="shared.txt"),
            call("read", path="a.txt"),
        ),
        says("The file is new."),
    ]
    with ServerThread(script) as server, machine.app_on(server, "--permission-mode", "allow") as app:
        app.ready()
        app.say("renew the file")
        app.wait_for_all("The file is new.", "✔ #1 read", "✔ #2 write", "✔ #3 read", "✔ #4 read")
        app.wait_for_status("ready")
        first, second = bodies_of(server)
        app.quit()

    texts = [text for text, is_error in results_in(second) if not is_error]
    assert ["old" in texts[0], "new" in texts[2], "alpha" in texts[3]] == [True, True, True]
    assert "new" not in texts[0]
    assert machine.work.joinpath("shared.txt").read_text("utf-8") == "new\n"
    assert first["stream"] is True


def test_parallel_calls_really_run_at_the_same_time(machine: UserMachine) -> None:
    # Each call waits for the other's file: run in sequence, they would never end.
    meet = "touch {0}; until [ -e {1} ]; do sleep 0.05; done; echo {0} met {1}"
    script = [
        calls(call("bash", command=meet.format("left", "right")), call("bash", command=meet.format("right", "left"))),
        says("They met."),
    ]
    options = ("--permission-mode", "allow", "--strategy", "parallel")
    with ServerThread(script) as server, machine.app_on(server, *options) as app:
        app.ready()
        app.say("let them meet")
        app.wait_for_all("They met.", "✔ #1 bash", "✔ #2 bash")
        _, second = bodies_of(server)
        app.quit()

    assert results_in(second) == [("left met right", False), ("right met left", False)]


def test_a_read_only_call_ends_while_the_model_still_streams(machine: UserMachine) -> None:
    machine.file("a.txt", "alpha\n")
    script = [calls(call("read", path="a.txt"), until("go"), call("read", path="a.txt")), says("Read twice.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("read it twice")
        server.reached("go")
        shown = app.wait_for("✔ #1 read")
        assert "#2" not in shown
        server.release("go")
        app.wait_for_all("Read twice.", "✔ #2 read")
        assert len(bodies_of(server)) == 2
        app.quit()


@pytest.mark.parametrize("ending", ["cut", "no_message_stop"])
def test_a_broken_stream_is_retried(machine: UserMachine, ending: str) -> None:
    script = [
        calls(text_block("This half is thrown away."), ending=ending),
        {**says("A whole answer."), "wait_for": "go"},
    ]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("tell me")
        server.reached("go")
        app.wait_for_words("(attempt 2 of 10)")
        app.wait_until_gone("This half is thrown away.")
        server.release("go")
        app.wait_for_words("A whole answer.")
        app.wait_for_status("ready")
        first, second = bodies_of(server)
        app.quit()

    assert first["messages"] == second["messages"]


def test_a_call_of_a_broken_stream_does_not_run_twice(machine: UserMachine) -> None:
    target = machine.work / "target.txt"
    script = [
        calls(
            text_block("This half is thrown away."),
            call("write", path="target.txt", content="from the broken stream\n"),
            ending="cut",
        ),
        calls(call("write", path="target.txt", content="from the whole stream\n"), wait_for="again"),
        says("Written once."),
    ]
    with ServerThread(script) as server, machine.app_on(server, "--permission-mode", "allow") as app:
        app.ready()
        app.say("write it")
        server.reached("again")
        app.wait_for_words("(attempt 2 of 10)")
        app.wait_until_gone("This half is thrown away.")
        if target.exists():  # It began before the stream broke off: then it is whole, and listed as a change.
            assert target.read_text("utf-8") == "from the broken stream\n"
            app.wait_for("1 changed")
        server.release("again")
        app.wait_for("Written once.")
        first, second, third = bodies_of(server)
        app.quit()

    assert target.read_text("utf-8") == "from the whole stream\n"
    assert first["messages"] == second["messages"]
    assert len(results_in(third)) == 1


def test_a_request_to_an_overloaded_model_is_retried_at_the_given_time(machine: UserMachine) -> None:
    script = [fails(529, "overloaded_error", **{"retry-after": "2"}), says("Now I have time.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("are you there")
        app.wait_for_row(r"retrying 2/10 in \d")
        assert "(529)" in app.wait_for_words("; trying again in 2.0 s (attempt 2 of 10)")
        app.wait_for("Now I have time.")
        app.wait_for_status("ready")
        bodies_of(server)
        first, second = (request["at"] for request in server.requests)
        app.quit()

    assert second - first >= 2.0


def test_an_error_inside_a_stream_that_began_well_is_retried_too(machine: UserMachine) -> None:
    script = [
        calls(text_block("It began"), ending="error", error_type="overloaded_error", error_message="too busy"),
        says("It ended well."),
    ]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("begin")
        app.wait_for_words("(attempt 2 of 10)")
        shown = app.wait_for("It ended well.")
        assert "It began" not in shown
        first, second = bodies_of(server)
        assert first["messages"] == second["messages"]
        app.quit()


def test_a_rejected_request_is_reported_once_and_the_conversation_continues(machine: UserMachine) -> None:
    script = [fails(400, "invalid_request_error"), says("Better now.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("hello")
        app.wait_for_words("(400): scripted invalid_request_error")
        app.wait_for_status("failed · ready")
        app.say("once more")
        app.wait_for("Better now.")
        assert len(bodies_of(server)) == 2
        app.quit()


def test_an_invalid_call_gets_a_result_and_the_run_continues(machine: UserMachine) -> None:
    broken: list[dict[str, object]] = [
        {"raw_input": '{"path": "a.t', "input": {}},
        {"name": "raed"},
        {"input": {"file": "a.txt"}},
    ]
    script = [*(calls({**call("read", path="a.txt"), **change}) for change in broken), says("I see my mistake.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.say("read it")
        app.wait_for_all("I see my mistake.", "✖ #1 ", "✖ #2 ", "✖ #3 ")
        _, *bodies = bodies_of(server)
        app.quit()

    assert len(bodies) == len(broken)
    for body in bodies:
        ((text, is_error),) = results_in(body)
        assert is_error
        assert text
