"""Answers by one key: each key has its effect, and other input never counts as an answer."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.server_thread import ServerThread

from .script import Block, Reply, bodies_of, call, calls, results_in, says, step
from .user_machine import App, UserMachine

BEFORE = "one\ntwo\nthree\n"
EDIT = call("edit", path="list.txt", old_string="two", new_string="2")


def changing(*more: Reply, edit: Block = EDIT) -> list[Reply]:
    """Script a model that reads a file and edits it."""
    return [calls(call("read", path="list.txt")), calls(edit), *more]


@contextmanager
def asked(
    machine: UserMachine, script: list[Reply], *options: str, tool: str = "edit"
) -> Iterator[tuple[App, ServerThread]]:
    """The program with an approval dialog on the screen."""
    machine.file("list.txt", BEFORE)
    with ServerThread(script) as server, machine.app_on(server, *options) as app:
        app.ready()
        app.say("change it")
        app.wait_for_question(tool)
        yield app, server


def ask_again(app: App) -> None:
    """Send another message, whose run asks to edit again."""
    app.wait_for_status("ready")
    app.say("try again")
    app.wait_for_question("edit")


def text_of(machine: UserMachine) -> str:
    """Return the current content of the file."""
    return (machine.work / "list.txt").read_text("utf-8")


def test_each_answer_has_its_effect_and_the_run_continues(machine: UserMachine) -> None:
    refused = [says("As you like."), calls(EDIT), says("I see."), calls(EDIT), says("Without it.")]
    with asked(machine, changing(*refused, calls(EDIT), says("Changed at last."))) as (app, server):
        app.wait_for_all("list.txt", "- two", "+ 2")
        app.wait_for_call("▲", 2, "edit")
        app.press("n")
        app.wait_for_words("you denied it")
        app.wait_for_words("As you like.")
        app.wait_for_call("⊘", 2, "edit")

        ask_again(app)
        app.press("f")
        app.wait_for("Type the reason")
        app.type("yes, no, say n: keep the word two")
        app.wait_for("keep the word two")
        app.press("enter")
        app.wait_for_words("you denied it: yes, no, say n: keep the word two")
        app.wait_for_words("I see.")

        ask_again(app)
        app.press("k")
        app.wait_for_words("Without it.")
        app.wait_for_call("⤼", 4, "edit")
        app.wait_for_words("you skipped")

        ask_again(app)
        app.press("escape")
        app.wait_for_row(r"▲ Edit list\.txt\? .*ctrl\+y answer")
        app.wait_for_call("▲", 5, "edit")
        app.type("y n s")
        app.wait_for_draft("y n s")
        assert text_of(machine) == BEFORE
        app.press("ctrl+c")
        app.wait_for_draft("")
        # The same keys as a Russian layout sends them.
        app.write("\x1b[1085;5u")
        app.wait_for_question("edit")
        app.write("\x1b[1085;;1085u")
        app.wait_for_words("Changed at last.")
        app.wait_for_call("✔", 5, "edit")
        bodies = bodies_of(server)
        app.quit()

    results = [results_in(bodies[number])[-1] for number in (2, 4, 6, 8)]
    assert [is_error for _, is_error in results] == [True, True, True, False]
    assert "yes, no, say n: keep the word two" in results[1][0]
    assert text_of(machine) == "one\n2\nthree\n"


def test_s_shows_the_rule_first_going_back_stores_none_and_then_it_does_not_ask_again(machine: UserMachine) -> None:
    more = [
        call("edit", path="list.txt", old_string=old, new_string=new) for old, new in (("three", "3"), ("one", "1"))
    ]
    with asked(machine, changing(calls(more[0]), calls(more[1]), says("All changed."))) as (app, server):
        app.press("s")
        app.wait_for("For this session also allowed:")
        app.press("escape")
        app.wait_until_gone("For this session also allowed:")
        app.wait_until_armed("y yes")
        app.press("y")
        app.wait_until_gone("f no, because")
        app.wait_for_question("edit")

        app.press("s")
        app.wait_for("For this session also allowed:")
        assert text_of(machine) == "one\n2\nthree\n"
        app.wait_until_armed("s yes, with this rule")
        app.press("s")
        app.wait_for_words("✔ You allowed for this session: edit(")
        app.wait_for_words("All changed.")
        assert len(bodies_of(server)) == 5
        app.quit()

    assert text_of(machine) == "1\n2\n3\n"
    asked_for = [event for event in machine.events() if event["type"] == "approval.requested"]
    assert len(asked_for) == 2


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


def test_two_requests_a_call_beside_one_a_trial_a_changed_call_and_a_long_input(machine: UserMachine) -> None:
    text = "".join(f"line {number}\n" for number in range(80)) + "the last line\n"
    script = [
        calls(call("write", path="first.txt", content="1\n"), call("write", path="second.txt", content="2\n")),
        says("One of two."),
        calls(call("write", path="new.txt", content="1\n"), call("read", path="list.txt")),
        says("Read and written."),
        calls(call("bash", command="ls -la | head -5"), call("bash", command="touch made.txt && ls")),
        says("Looked and touched."),
        calls(call("bash", command="touch a", sandbox=False)),
        says("Touched."),
        calls(call("write", path="long.txt", content=text)),
        says("Written."),
    ]

    def ask_for(tool: str, words: str) -> None:
        app.wait_for_status("ready")
        app.say(words)
        app.wait_for_question(tool)

    with asked(machine, script, tool="write") as (app, server):
        app.wait_for_all("1 of 2", "first.txt")
        # The keys of y and n, with full width and on a Greek layout.
        app.write("ｙ")
        app.press("enter")
        app.wait_for("2 of 2")
        app.wait_for_question("write")
        app.write("ν")
        app.wait_for_words("One of two.")
        assert (machine.work / "first.txt").exists()
        assert not (machine.work / "second.txt").exists()

        ask_for("write", "write and read")
        app.wait_for_call("✔", 4, "read")
        assert "▲ Create " in app.screen.text, "the read runs beside the dialog"
        app.press("y")
        app.wait_for_words("Read and written.")

        app.wait_for_status("ready")
        app.say("look and touch")
        app.wait_for_call("✔", 5, "bash")
        app.wait_for("Keep what touch made.txt && ls changed?")
        app.wait_until_armed("y keep")
        assert not (machine.work / "made.txt").exists()
        app.press("y")
        app.wait_for_words("Looked and touched.")
        assert (machine.work / "made.txt").exists()

        ask_for("bash", "touch it")
        app.press("e")
        app.wait_for("ctrl+s allow this")
        app.type("b")
        app.wait_for("touch ab")
        app.press("ctrl+s")
        app.wait_for_words("Touched.")
        assert (machine.work / "ab").exists()
        assert not (machine.work / "a").exists()

        app.wait_for_status("ready")
        app.say("write a long file")
        app.wait_for("▲ Create ")
        # A yes is dim until the end was seen.
        app.wait_until_armed("n no")
        app.press("y")
        app.read(0.5)
        app.wait_for("before a yes counts")
        app.wait_for("▲ Create ")
        assert not (machine.work / "long.txt").exists()
        for _ in range(20):
            if "the last line" in app.screen.text:
                break
            before = app.screen.text
            app.press("pagedown")
            app.wait_for(lambda screen, before=before: screen.text != before)
        app.wait_until_gone("before a yes counts")
        app.press("y")
        app.wait_for_words("Written.")
        bodies = bodies_of(server)
        app.quit()

    assert [is_error for _, is_error in results_in(bodies[1])][-2:] == [False, True]
    assert "The user changed the arguments before approving: command" in results_in(bodies[7])[-1][0]
    assert (machine.work / "long.txt").read_text("utf-8") == text
