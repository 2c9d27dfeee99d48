"""The user switches between sessions inside the program."""

from tests.support.server_thread import ServerThread

from .script import says
from .user_machine import UserMachine


def test_a_session_that_cannot_be_saved_runs_says_so_and_asks_before_it_is_lost(machine: UserMachine) -> None:
    (machine.home / ".local").write_text("no directory for the state of programs", "utf-8")
    with ServerThread([says(text) for text in ("One.", "Two.", "Three.")]) as server:
        printed = machine.run("-p", "first", variables=server.environment)
        by_choice = machine.run("-p", "second", "--no-session", variables=server.environment)
        with machine.app_on(server) as app:
            app.wait_for("not saved")
            app.say("third")
            app.wait_for_words("Three.")
            app.wait_for_status("ready · not saved")
            app.press("ctrl+q")
            app.wait_for("Quit?")
            app.press("escape")
            app.wait_until_gone("Quit?")
            app.press("ctrl+q", "ctrl+q")
            assert app.wait_for_end() == 0

    assert (printed.returncode, printed.stdout) == (1, "One.\n")
    assert "No session can be saved in" in printed.stderr
    assert "This session runs without being saved." in printed.stderr
    assert (by_choice.returncode, by_choice.stderr) == (0, "")
