"""Typed input arrives, however fast, however early, in any form the terminal sends it."""

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, says, words_in
from .user_machine import UserMachine

ALLOWED = ("--permission-mode", "allow")
WAITS = "echo begun; until [ -e gate ]; do sleep 0.05; done"


def test_a_line_and_its_enter_in_one_piece_are_sent(machine: UserMachine) -> None:
    with ServerThread([says("Hello to you.")]) as server, machine.app_on(server) as app:
        app.ready()
        app.write("hello\r")
        app.wait_for_words("Hello to you.")
        (request,) = bodies_of(server)
        app.wait_for_draft("")
        app.quit()

    assert words_in(request) == ["hello"]


def test_lines_in_one_piece_are_one_draft(machine: UserMachine) -> None:
    with ServerThread([says("All heard.")]) as server, machine.app_on(server) as app:
        app.ready()
        app.write("first\rsecond\rthird\r")
        app.wait_for_row(r"› first$")
        app.wait_for_row(r"^ +third$")
        assert bodies_of(server) == []
        app.press("enter")
        app.wait_for_words("All heard.")
        (request,) = bodies_of(server)
        app.quit()

    assert words_in(request) == ["first\nsecond\nthird"]


def test_input_typed_during_the_start_is_kept(machine: UserMachine) -> None:
    machine.forks = False
    with ServerThread([says("Early bird.")]) as server, machine.app_on(server) as app:
        app.type("typed too early")
        app.ready()
        app.wait_for_draft("typed too early")
        app.press("enter")
        app.wait_for_words("Early bird.")
        (request,) = bodies_of(server)
        app.quit()

    assert words_in(request) == ["typed too early"]


def test_a_follow_up_waits_for_its_own_turn_in_every_encoding(machine: UserMachine) -> None:
    encoded = {"second": "\x1b\r", "third": "\x1b[13;3u", "fourth": "\x1b[27;3;13~", "fifth": "\t"}
    turns = [says(f"The {name} is done.") for name in ("first", *encoded)]
    script = [calls(call("bash", command=WAITS)), *turns]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
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
        _, *bodies = bodies_of(server)
        app.quit()

    said = ["the first", *(f"the {name}" for name in encoded)]
    assert [words_in(body) for body in bodies] == [said[: end + 1] for end in range(len(said))]


def test_a_queued_message_can_be_recalled_changed_and_sent_again(machine: UserMachine) -> None:
    script = [calls(call("bash", command=WAITS)), says("Heard.")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("begin")
        app.wait_for_row(r"│ +begun")
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
        (machine.work / "gate").touch()
        app.wait_for_words("Heard.")
        _, second = bodies_of(server)
        app.quit()

    assert words_in(second) == ["begin", "change that"]


def test_lines_are_joined_by_ctrl_j_and_a_long_paste_is_sent_whole(machine: UserMachine) -> None:
    pasted = "\n".join(f"pasted line {number}" for number in range(200))
    with ServerThread([says("All of it.")]) as server, machine.app_on(server) as app:
        app.ready()
        app.type("first line")
        app.press("ctrl+j")
        app.type("second line ")
        app.wait_for("second line")
        app.paste(pasted)
        app.wait_for_row(r"\[pasted 200 lines\]")
        app.press("enter")
        app.wait_for_words("All of it.")
        (request,) = bodies_of(server)
        app.quit()

    (said,) = words_in(request)
    assert said.startswith("first line\nsecond line pasted line 0\npasted line 1\n")
    assert said.endswith("pasted line 199")


def test_a_paste_with_escape_and_enter_sends_nothing(machine: UserMachine) -> None:
    with ServerThread([says("All of it.")]) as server, machine.app_on(server) as app:
        app.ready()
        app.write("\x1b[200~M1\x1b\rM2\x1b[201~")
        app.wait_for_row(r"› M1\\x1b$")
        app.wait_for_row(r"^ +M2$")
        app.type("!")
        app.wait_for_row(r"^ +M2!$")
        assert bodies_of(server) == []
        app.press("enter")
        app.wait_for_words("All of it.")
        (request,) = bodies_of(server)
        app.quit()

    assert words_in(request) == ["M1\x1b\nM2!"]


def test_control_sequences_in_text_are_shown_escaped(machine: UserMachine) -> None:
    evil = "red \x1b[31mnot red\x1b[0m \x1b]52;c;aGk=\x07 \u202e [bold]plain[/bold] [/"
    machine.file("evil.txt", f"{evil}\n")
    script = [calls(call("read", path="evil.txt"), call("bash", command="cat evil.txt")), says(f"It said: {evil}")]
    with ServerThread(script) as server, machine.app_on(server, *ALLOWED) as app:
        app.ready()
        app.say("read the evil file")
        app.wait_for_words("It said: red")
        app.wait_for_status("ready")
        app.wait_for("[bold]plain[/bold]")
        bodies_of(server)
        app.quit()
        assert b"]52;" not in app.raw.replace(b"\\", b"")
        assert b"\x1b[31mnot red" not in app.raw
        assert "\u202e".encode() not in app.raw
