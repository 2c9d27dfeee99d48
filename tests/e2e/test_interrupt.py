"""Interrupts end running calls with all their processes, restore the composer, and let the conversation continue."""

import psutil

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says, step, text_block
from .user_machine import App, UserMachine

ALLOWED = ("--permission-mode", "allow")
MOST_MEMORY = 400_000_000
"""Maximum memory of the program in bytes, whatever the output."""


def interrupt(app: App) -> None:
    """Press both keys of an interrupt, the second one once the first has taken effect."""
    app.press("escape")
    app.wait_for("esc again")
    app.press("escape")
    app.wait_for_status("ready")


def brood(tag: str, words: str) -> str:
    """Return a command that starts children in every way that hides them, and waits for them."""
    return (
        f"sleep {tag}.1 & nohup sleep {tag}.2 >/dev/null 2>&1 & setsid sleep {tag}.3 & "
        f"(setsid bash -c 'sleep {tag}.4 & sleep {tag}.5; true' &) ; bash -c \"trap '' TERM; sleep {tag}.6; true\" & "
        f"echo {words}; wait"
    )


def test_interrupts_end_all_processes_and_a_flood_blocks_nothing(machine: UserMachine) -> None:
    script = [
        calls(text_block("It takes long."), call("bash", command=brood(machine.tag, "all are there"))),
        says("We go on."),
        calls(call("bash", command=brood(machine.tag, "all are here"), timeout=5.0)),
        says("It took too long."),
        calls(call("bash", command=f"yes flood-{machine.tag}")),
        says("It is quiet again."),
    ]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        with step("an interrupted command ends with all its descendants"):
            app.say("start a brood")
            app.wait_for_row(r"^ +all are there")
            app.wait_for(lambda _: len(machine.processes()) >= 6)
            interrupt(app)
            assert machine.processes() == []
            app.wait_for_call("■", 1, "bash")
            app.wait_for_words("── cancelled")

            app.say("and now")
            app.wait_for_words("We go on.")
            body = bodies_of(server)[-1]
            # Its output is in the result unless its end takes longer than the agent waits for it.
            ((_, is_error),) = results_in(body)
            assert is_error
            assert body["messages"][-1]["content"][-1]["text"] == "and now"

        with step("a command that runs too long is ended with all its descendants"):
            app.wait_for_status("ready")
            app.say("start another")
            app.wait_for_words("It took too long.")
            app.wait_for_words("timed out")
            assert machine.processes() == []
            first, second = server.requests[-2:]
            ((text, is_error),) = results_in(bodies_of(server)[-1])
            assert is_error
            assert "all are here" in text
            assert second["at"] - first["answered_at"] < 5.0 + 2.0 + 20.0, "the deadline, the grace, and a slow machine"

        with step("a flood of output does not block the program"):
            app.wait_for_status("ready")
            app.say("flood me")
            app.wait_for_row(rf"^ +flood-{machine.tag}")
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
            ((text, _),) = results_in(bodies_of(server)[-1])
            assert len(text) < 40_000
            (whole,) = machine.home.glob("**/*.files/*")
            assert str(whole) in text
            whole.unlink()

        app.quit()

    assert sum(journal.stat().st_size for journal in machine.journals) < 5_000_000
