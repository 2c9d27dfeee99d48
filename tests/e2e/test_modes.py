"""Permission modes by one key, each in force from the moment it is chosen."""

import pytest

from tests.support.server_process import ServerProcess

from .desk import App, Desk
from .script import bodies_of, call, calls, results_in, says

pytestmark = pytest.mark.e2e

READ_AND_EDIT = [
    calls(call("read", path="list.txt")),
    calls(call("edit", path="list.txt", old_string="two", new_string="2")),
    says("That was it."),
]


def choose(app: App, mode: str) -> None:
    """Press Shift+Tab until the title bar names the mode."""
    app.press("shift+tab")
    app.wait_for(lambda screen: screen.lines[0].endswith(f" {mode}"))


def test_shift_tab_switches_to_the_next_mode(desk: Desk) -> None:
    with desk.app("--demo") as app:
        app.ready()
        assert app.screen.lines[0].endswith(" · ask")
        choose(app, "accept edits")
        choose(app, "plan")
        choose(app, "ask")
        app.quit()


def test_accept_edits_lets_an_edit_run_and_still_asks_for_a_command(desk: Desk) -> None:
    target = desk.file("list.txt", "one\ntwo\n")
    script = [*READ_AND_EDIT[:2], calls(call("bash", command="touch made.txt")), says("That was it.")]
    with ServerProcess(script, desk.root) as server, desk.app_on(server) as app:
        app.ready()
        choose(app, "accept edits")
        app.say("change it")
        app.wait_for_question("bash")
        assert target.read_text("utf-8") == "one\n2\n"
        app.press("n")
        app.wait_for_words("That was it.")
        bodies_of(server)
        app.quit()

    assert not (desk.work / "made.txt").exists()
    asked_for = [event["data"]["tool"] for event in desk.events() if event["type"] == "approval.requested"]
    assert asked_for == ["bash"]


def test_plan_denies_every_change_without_a_question(desk: Desk) -> None:
    target = desk.file("list.txt", "one\ntwo\n")
    script = [*READ_AND_EDIT[:2], calls(call("bash", command="touch made.txt")), says("Only a plan.")]
    with ServerProcess(script, desk.root) as server, desk.app_on(server) as app:
        app.ready()
        choose(app, "accept edits")
        choose(app, "plan")
        app.say("change it")
        app.wait_for_words("Only a plan.")
        app.wait_for_row(r"⊘ #2 edit")
        app.wait_for_row(r"⊘ #3 bash")
        bodies = bodies_of(server)
        app.quit()

    for body in bodies[2:]:
        ((text, is_error),) = results_in(body)
        assert is_error
        assert "plan" in text.lower()
    assert target.read_text("utf-8") == "one\ntwo\n"
    assert not (desk.work / "made.txt").exists()
    assert not any(event["type"] == "approval.requested" for event in desk.events())


def test_a_mode_that_allows_the_call_answers_the_pending_question(desk: Desk) -> None:
    target = desk.file("list.txt", "one\ntwo\n")
    with ServerProcess(READ_AND_EDIT, desk.root) as server, desk.app_on(server) as app:
        app.ready()
        app.say("change it")
        app.wait_for_question("edit")
        app.press("escape")
        app.wait_for("▲ edit needs you:")
        choose(app, "accept edits")
        app.wait_for_words("That was it.")
        app.wait_until_gone("▲ edit needs you:")
        bodies_of(server)
        app.quit()

    assert target.read_text("utf-8") == "one\n2\n"


def test_protected_files_are_denied_even_in_mode_allow(desk: Desk) -> None:
    (desk.work / ".git").mkdir()
    script = [
        calls(call("write", path=".git/config", content="[core]\n"), call("bash", command="echo x > .git/HEAD")),
        says("Not even now."),
    ]
    with ServerProcess(script, desk.root) as server, desk.app_on(server, "--permission-mode", "allow") as app:
        app.ready()
        app.wait_for("ALLOW ALL")
        app.say("break the repository")
        app.wait_for_words("Not even now.")
        _, second = bodies_of(server)
        app.quit()

    assert [is_error for _, is_error in results_in(second)] == [True, True]
    assert list((desk.work / ".git").iterdir()) == []
