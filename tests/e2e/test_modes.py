"""Permission modes by one key, with immediate effect."""

from tests.support.server_thread import ServerThread

from .script import Reply, bodies_of, call, calls, results_in, says, step
from .user_machine import App, UserMachine


def choose(app: App, mode: str) -> None:
    """Press Shift+Tab until the frame shows the mode."""
    app.press("shift+tab")
    app.wait_for_mode(mode)


def read_and_edit(name: str) -> list[Reply]:
    return [calls(call("read", path=name)), calls(call("edit", path=name, old_string="two", new_string="2"))]


def test_each_mode_has_its_effect_at_once(machine: UserMachine) -> None:
    (machine.work / ".git").mkdir()
    (machine.work / "node_modules").mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        machine.file(name, "one\ntwo\n")
    protected = call("write", path=".git/config", content="[core]\n")
    script = [
        *read_and_edit("a.txt"),
        says("That was it."),
        *read_and_edit("b.txt"),
        calls(call("bash", command="touch made.txt", sandbox=False)),
        says("Only the edit."),
        *read_and_edit("c.txt"),
        calls(call("bash", command="touch made.txt")),
        says("Only a plan."),
        calls(protected, call("bash", command="rm -rf node_modules")),
        # Twice: a message says what the command did to protected files.
        *(says("Removed."), says("I know.")),
    ]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        app.wait_for_mode("ask")
        with step("a mode that allows it resolves the open request"):
            app.say("change it")
            app.wait_for_question("edit")
            app.press("escape")
            app.wait_for_row(r"▲ Edit a\.txt\? .*ctrl\+y answer")
            choose(app, "accept edits")
            app.wait_for_words("That was it.")
            app.wait_until_gone("ctrl+y answer")
            assert (machine.work / "a.txt").read_text("utf-8") == "one\n2\n"

        with step("accept edits lets an edit run and still asks for a command outside"):
            app.wait_for_status("ready")
            app.say("change the next")
            app.wait_for_question("bash")
            assert (machine.work / "b.txt").read_text("utf-8") == "one\n2\n"
            app.press("n")
            app.wait_for_words("Only the edit.")
            assert not (machine.work / "made.txt").exists()

        with step("plan keeps no change without a dialog"):
            app.wait_for_status("ready")
            choose(app, "plan")
            app.say("plan it")
            app.wait_for_words("Only a plan.")
            app.wait_for_call("⊘", 7, "edit")
            app.wait_for_call("⊘", 8, "bash")
            for body, refused in zip(bodies_of(server)[-2:], (True, False), strict=True):
                ((text, is_error),) = results_in(body)
                assert is_error is refused
                assert "plan" in text.lower()
            assert (machine.work / "c.txt").read_text("utf-8") == "one\ntwo\n"
            assert not (machine.work / "made.txt").exists()

        with step("in mode allow, tools keep out of protected paths and commands run"):
            app.wait_for_status("ready")
            choose(app, "ask")
            app.say("/mode allow")
            app.wait_for("ALLOW ALL")
            app.say("start afresh")
            app.wait_for_words("Removed.")
            assert [is_error for _, is_error in results_in(bodies_of(server)[12])] == [True, False]
            assert list((machine.work / ".git").iterdir()) == []
            assert not (machine.work / "node_modules").exists()
        app.quit()

    asked_for = [event["data"]["tool"] for event in machine.events() if event["type"] == "approval.requested"]
    assert asked_for == ["edit", "bash"]
