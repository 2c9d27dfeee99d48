"""Typed input arrives, however fast, in any form the terminal sends it."""

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, says, step, words_in
from .user_machine import UserMachine

ALLOWED = ("--permission-mode", "allow")


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


def test_queued_messages_and_hostile_text(machine: UserMachine) -> None:
    encoded = {"second": "\x1b\r", "third": "\x1b[13;3u", "fourth": "\x1b[27;3;13~", "fifth": "\t"}
    turns = [says(f"The {name} is done.") for name in ("first", *encoded)]
    evil = "red \x1b[31mnot red\x1b[0m \x1b]52;c;aGk=\x07 \u202e [bold]plain[/bold] [/"
    machine.file("evil.txt", f"{evil}\n")
    script = [
        calls(call("bash", command="echo begun; until [ -e gate ]; do sleep 0.05; done")),
        *turns,
        calls(call("bash", command="echo once more; until [ -e door ]; do sleep 0.05; done")),
        says("Heard."),
        calls(call("read", path="evil.txt"), call("bash", command="cat evil.txt")),
        says(f"It said: {evil}"),
    ]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        with step("a follow-up waits for its own turn in every encoding"):
            app.say("the first")
            app.wait_for_row(r"│ +begun")
            for number, (name, keys) in enumerate(encoded.items(), 1):
                app.type(f"the {name}")
                app.wait_for_draft(f"the {name}")
                app.write(keys)
                app.wait_for_row(rf"{number} follow-up  “the {name}” +a turn of its own")
                app.wait_for_draft("")
            (machine.work / "gate").touch()
            for name in encoded:
                app.wait_for_words(f"↳ the {name} follow-up")
                app.wait_for_words(f"The {name} is done.")
            said = ["the first", *(f"the {name}" for name in encoded)]
            assert [words_in(body) for body in bodies_of(server)[1:]] == [said[: end + 1] for end in range(len(said))]

        with step("a queued message can be recalled, changed and sent again"):
            app.wait_for_status("ready")
            app.say("begin")
            app.wait_for_row(r"│ +once more")
            app.say("drop this")
            app.wait_for_row(r"1 steer  “drop this”")
            app.press("ctrl+x")
            app.wait_until_gone("─ queue ─")
            app.say("change this")
            app.wait_for_row(r"1 steer  “change this”")
            app.press("up")
            app.wait_for_draft("change this")
            app.wait_for_row(r"›1 steer  “change this” +being edited")
            app.press("backspace", "backspace", "backspace", "backspace")
            app.type("that")
            app.wait_for_draft("change that")
            app.press("enter")
            app.wait_for_row(r"1 steer  “change that”")
            (machine.work / "door").touch()
            app.wait_for_words("Heard.")
            assert words_in(bodies_of(server)[-1])[-2:] == ["begin", "change that"]

        with step("control sequences in text are shown escaped"):
            app.wait_for_status("ready")
            app.say("read the evil file")
            app.wait_for_words("It said: red")
            app.wait_for_status("ready")
            app.wait_for("[bold]plain[/bold]")
            bodies_of(server)
            app.quit()
            assert b"]52;" not in app.raw.replace(b"\\", b"")
            assert b"\x1b[31mnot red" not in app.raw
            assert "\u202e".encode() not in app.raw
