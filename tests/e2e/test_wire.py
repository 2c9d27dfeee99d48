"""The program with the real SDK over HTTP: broken streams, retries, and several calls in one answer."""

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says, step, text_block
from .user_machine import UserMachine


def test_broken_streams_and_failed_requests_are_retried_or_reported(machine: UserMachine) -> None:
    target = machine.work / "target.txt"
    script = [
        calls(text_block("This half is thrown away."), ending="cut"),
        {**says("A whole answer."), "wait_for": "cut"},
        calls(text_block("This piece is thrown away."), ending="no_message_stop"),
        {**says("A second answer."), "wait_for": "no_message_stop"},
        calls(
            text_block("This call is thrown away."),
            call("write", path="target.txt", content="from the broken stream\n"),
            ending="cut",
        ),
        calls(call("write", path="target.txt", content="from the whole stream\n"), wait_for="again"),
        says("Written once."),
    ]
    with ServerThread(script) as server, machine.app_on(server, "--permission-mode", "allow") as app:
        app.ready()
        for ending, half, answer in (
            ("cut", "This half is thrown away.", "A whole answer."),
            ("no_message_stop", "This piece is thrown away.", "A second answer."),
        ):
            with step(f"a broken stream is retried: {ending}"):
                app.say("tell me")
                server.reached(ending)
                app.wait_for_words("(attempt 2 of 10)")
                app.wait_until_gone(half)
                server.release(ending)
                app.wait_for_words(answer)
                app.wait_for_status("ready")
                first, second = bodies_of(server)[-2:]
                assert first["messages"] == second["messages"]

        with step("a call of a broken stream does not run twice"):
            app.say("write it")
            server.reached("again")
            app.wait_until_gone("This call is thrown away.")
            if target.exists():  # It began before the stream broke off: then it is whole, and listed as a change.
                assert target.read_text("utf-8") == "from the broken stream\n"
                app.wait_for("+1 −0")
            server.release("again")
            app.wait_for("Written once.")
            app.wait_for_status("ready")
            first, second, third = bodies_of(server)[-3:]
            assert target.read_text("utf-8") == "from the whole stream\n"
            assert first["messages"] == second["messages"]
            assert len(results_in(third)) == 1

        app.quit()
