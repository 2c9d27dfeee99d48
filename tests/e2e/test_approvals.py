"""Answers by one key: each key has its effect, and other input never counts as an answer."""

from tests.support.server_thread import ServerThread

from .script import Block, Reply, bodies_of, call, calls, says, step
from .user_machine import UserMachine

BEFORE = "one\ntwo\nthree\n"
EDIT = call("edit", path="list.txt", old_string="two", new_string="2")


def changing(*more: Reply, edit: Block = EDIT) -> list[Reply]:
    """Script a model that reads a file and edits it."""
    return [calls(call("read", path="list.txt")), calls(edit), *more]


def text_of(machine: UserMachine) -> str:
    """Return the current content of the file."""
    return (machine.work / "list.txt").read_text("utf-8")


def test_typing_and_pastes_never_answer_and_the_draft_is_untouched(machine: UserMachine) -> None:
    machine.file("list.txt", BEFORE)
    script = changing(says("Answered."))
    script[1]["wait_for"] = "typing"
    third = call("edit", path="list.txt", old_string="three", new_string="3")
    script += [calls(third, wait_for="draft"), says("Denied."), calls(third), says("Not changed.")]
    changed = "one\n2\nthree\n"

    def wait_until_hidden() -> None:
        app.wait_for_row(r"▲ Edit list\.txt\? .*ctrl\+y answer")

    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        with step("a user who is typing is not interrupted by a dialog"):
            app.say("change it")
            server.reached("typing")
            app.type("I was")
            app.wait_for_draft("I was")
            server.release("typing")
            # Letters without a pause, as of a user who types a sentence. None of them is an answer.
            for letter in 300 * "e":
                app.type(letter)
                app.read(0.05)
                if "ctrl+y answer" in app.screen.text:
                    break
            assert "f no, because" not in app.screen.text
            app.wait_for(lambda screen: app.draft.startswith("I wase"))

            app.wait_for_question("edit")
            assert text_of(machine) == BEFORE
            app.press("y")
            app.wait_for_words("Answered.")
            app.wait_for(lambda screen: app.draft.rstrip("e") == "I was")
            assert text_of(machine) == changed
            app.press("ctrl+c")
            app.wait_for_draft("")

        with step("a paste never answers, and the draft is untouched"):
            app.wait_for_status("ready")
            app.say("change the next")
            server.reached("draft")
            app.type("what I was writing")
            app.wait_for_draft("what I was writing")
            server.release("draft")
            app.wait_for_question("edit")
            app.paste("y")
            app.wait_for_draft("what I was writingy")
            app.write("\x19")
            app.wait_for_question("edit")
            app.paste("s\ns\ny\n")
            app.wait_for("what I was writingys")
            wait_until_hidden()
            assert text_of(machine) == changed
            app.write("\x19")
            app.wait_for_question("edit")
            app.wait_until_armed("n no")
            app.press("n")
            app.wait_for_words("Denied.")
            app.wait_for("what I was writingys")
            app.press("ctrl+c")
            app.wait_for_draft("")

        app.wait_for_status("ready")
        app.say("change it again")
        app.wait_for_question("edit")
        for pasted in ("y", "y\r", "\x1b\ry\x1b\r", "\x1b[121u\x1b[13u", "\x1b[200~y\r", "a\x1b\x1by"):
            with step(f"a paste of {pasted!r}"):
                app.paste(pasted)
                wait_until_hidden()
                assert text_of(machine) == changed, pasted
                app.press("ctrl+c")
                app.wait_for_draft("")
                app.press("ctrl+y")
                app.wait_for_question("edit")
                app.wait_until_armed("n no")

        with step("keys before the dialog never answer"):
            app.press("escape")
            wait_until_hidden()
            # In one write, so that the letters arrive before the dialog on any machine.
            app.write("\x19yyyyyyyy")
            app.wait_for_draft("yyyyyyyy")
            app.write("\x19")
            app.wait_for_question("edit")
            app.wait_until_armed("n no")
            assert text_of(machine) == changed
            app.press("n")
            app.wait_for_words("Not changed.")
            assert app.draft.strip("y") == ""
            bodies_of(server)
            app.press("ctrl+q")
            assert app.wait_for_end() == 0

    assert text_of(machine) == changed
