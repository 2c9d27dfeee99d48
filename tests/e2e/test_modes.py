"""Permission modes by one key, with immediate effect."""

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says
from .user_machine import App, UserMachine

READ_AND_EDIT = [
    calls(call("read", path="list.txt")),
    calls(call("edit", path="list.txt", old_string="two", new_string="2")),
    says("That was it."),
]


def choose(app: App, mode: str) -> None:
    """Press Shift+Tab until the title bar shows the mode."""
    app.press("shift+tab")
    app.wait_for(lambda screen: screen.lines[0].endswith(f" {mode}"))


def test_the_modes_cycle(machine: UserMachine) -> None:
    with machine.app("--demo") as app:
        app.ready()
        assert app.screen.lines[0].endswith(" · ask")
        choose(app, "accept edits")
        choose(app, "plan")
        choose(app, "ask")
        app.quit()


def test_accept_edits_lets_an_edit_run_and_still_asks_for_a_command_outside(machine: UserMachine) -> None:
    target = machine.file("list.txt", "one\ntwo\n")
    outside = calls(call("bash", command="touch made.txt", sandbox=False))
    script = [*READ_AND_EDIT[:2], outside, says("That was it.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        choose(app, "accept edits")
        app.say("change it")
        app.wait_for_question("bash")
        assert target.read_text("utf-8") == "one\n2\n"
        app.press("n")
        app.wait_for_words("That was it.")
        bodies_of(server)
        app.quit()

    assert not (machine.work / "made.txt").exists()
    asked_for = [event["data"]["tool"] for event in machine.events() if event["type"] == "approval.requested"]
    assert asked_for == ["bash"]


def test_plan_keeps_no_change_without_a_dialog(machine: UserMachine) -> None:
    target = machine.file("list.txt", "one\ntwo\n")
    script = [*READ_AND_EDIT[:2], calls(call("bash", command="touch made.txt")), says("Only a plan.")]
    with ServerThread(script) as server, machine.app_on(server) as app:
        app.ready()
        choose(app, "accept edits")
        choose(app, "plan")
        app.say("change it")
        app.wait_for_words("Only a plan.")
        app.wait_for_row(r"⊘ #2 edit")
        app.wait_for_row(r"✔ #3 bash")
        bodies = bodies_of(server)
        app.quit()

    for body, refused in zip(bodies[2:], (True, False), strict=True):
        ((text, is_error),) = results_in(body)
        assert is_error is refused
        assert "plan" in text.lower()
    assert target.read_text("utf-8") == "one\ntwo\n"
    assert not (machine.work / "made.txt").exists()
    assert not any(event["type"] == "approval.requested" for event in machine.events())


def test_a_mode_that_allows_it_resolves_the_open_request(machine: UserMachine) -> None:
    target = machine.file("list.txt", "one\ntwo\n")
    with ServerThread(READ_AND_EDIT) as server, machine.app_on(server) as app:
        app.ready()
        app.say("change it")
        app.wait_for_question("edit")
        app.press("escape")
        app.wait_for_row(r"▲ Edit list\.txt\? .*ctrl\+y answer")
        choose(app, "accept edits")
        app.wait_for_words("That was it.")
        app.wait_until_gone("ctrl+y answer")
        bodies_of(server)
        app.quit()

    assert target.read_text("utf-8") == "one\n2\n"


def test_in_mode_allow_tools_keep_out_of_protected_paths_and_commands_run(machine: UserMachine) -> None:
    (machine.work / ".git").mkdir()
    (machine.work / "node_modules").mkdir()
    script = [
        calls(call("write", path=".git/config", content="[core]\n"), call("bash", command="rm -rf node_modules")),
        says("Removed."),
    ]
    with ServerThread(script) as server, machine.app_on(server, "--permission-mode", "allow") as app:
        app.ready()
        app.wait_for("ALLOW ALL")
        app.say("start afresh")
        app.wait_for_words("Removed.")
        second = bodies_of(server)[1]
        app.quit()

    assert [is_error for _, is_error in results_in(second)] == [True, False]
    assert list((machine.work / ".git").iterdir()) == []
    assert not (machine.work / "node_modules").exists()
