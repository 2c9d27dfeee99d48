"""Typed input arrives, however fast, in any form the terminal sends it."""

from tests.support.server_thread import ServerThread

from .script import bodies_of, says, step, words_in
from .user_machine import UserMachine


def test_lines_and_pastes_are_sent_as_they_were_typed(machine: UserMachine) -> None:
    pasted = "\n".join(f"pasted line {number}" for number in range(200))
    answers = ("Hello to you.", "All heard.", "Every line.", "The paste, too.")
    with ServerThread([says(answer) for answer in answers]) as server, machine.app_on(server) as app:
        app.ready()
        with step("a line and its enter in one piece are sent"):
            app.write("hello\r")
            app.wait_for_words("Hello to you.")
            app.wait_for_draft("")
            assert words_in(bodies_of(server)[-1]) == ["hello"]

        with step("lines in one piece are one draft"):
            app.wait_for_status("ready")
            app.write("first\rsecond\rthird\r")
            app.wait_for_row(r"› first$")
            app.wait_for_row(r"^ +third$")
            assert len(bodies_of(server)) == 1
            # An enter right behind the lines may still belong to them.
            app.press("enter")
            while not app.comes("All heard.", 2.0):
                app.press("enter")
            assert words_in(bodies_of(server)[-1])[-1].rstrip() == "first\nsecond\nthird"

        with step("lines are joined by ctrl+j, and a long paste is sent whole"):
            app.wait_for_status("ready")
            app.type("first line")
            app.press("ctrl+j")
            app.type("second line ")
            app.wait_for("second line")
            app.paste(pasted)
            app.wait_for_row(r"\[pasted 200 lines\]")
            app.press("enter")
            app.wait_for_words("Every line.")
            said = words_in(bodies_of(server)[-1])[-1]
            assert said.startswith("first line\nsecond line pasted line 0\npasted line 1\n")
            assert said.endswith("pasted line 199")

        with step("a paste with escape and enter sends nothing"):
            app.wait_for_status("ready")
            app.write("\x1b[200~M1\x1b\rM2\x1b[201~")
            app.wait_for_row(r"› M1\\x1b$")
            app.wait_for_row(r"^ +M2$")
            app.type("!")
            app.wait_for_row(r"^ +M2!$")
            assert len(bodies_of(server)) == 3
            app.press("enter")
            app.wait_for_words("The paste, too.")
            assert words_in(bodies_of(server)[-1])[-1] == "M1\x1b\nM2!"
        app.quit()
