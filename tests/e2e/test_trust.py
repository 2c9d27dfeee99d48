"""A folder's settings apply only after the user trusts it; grants outlive the session as chosen."""

import json

import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, results_in, says
from .user_machine import UserMachine

SETTINGS = '[permissions]\nrules = [["deny", "bash(make:*)"], ["allow", "bash(touch:*)"]]\n'


def bring(machine: UserMachine, text: str = SETTINGS) -> None:
    (machine.work / ".tui-agent").mkdir()
    (machine.work / ".tui-agent" / "config.toml").write_text(text, "utf-8")


def rules_in_force(machine: UserMachine) -> list[list[str]]:
    return [rule["rule"] for rule in json.loads(machine.run("config", "show", "--json").stdout)["rules"]]


def test_the_question_comes_first_and_its_default_is_no(machine: UserMachine) -> None:
    bring(machine)
    with machine.app("--demo") as app:
        app.wait_for_all("its own settings", "deny bash(make:*)", "allow bash(touch:*)")
        app.wait_until_armed("n no")
        app.paste("t\x1b\ra\x1b[97u\r")
        app.resize(119, 40)
        app.wait_until_armed("n no")
        # A key right behind a paste may still count as text.
        app.press("enter")
        while not app.comes(lambda screen: "its own settings" not in screen.text, 2.0):
            app.press("enter")
        app.ready()
        app.quit()
    assert rules_in_force(machine) == []

    with machine.app("--demo") as app:
        app.ready()
        app.quit()


@pytest.mark.parametrize(
    ("key", "rules"),
    [("t", [["deny", "bash(make:*)"]]), ("a", [["deny", "bash(make:*)"], ["allow", "bash(touch:*)"]])],
)
def test_a_yes_is_stored_for_exactly_these_settings(machine: UserMachine, key: str, rules: list[list[str]]) -> None:
    bring(machine)
    with machine.app("--demo") as app:
        app.wait_for_all("its own settings")
        app.wait_until_armed("n no")
        app.press(key)
        app.ready()
        app.quit()
    assert rules_in_force(machine) == rules

    (machine.work / ".tui-agent" / "config.toml").write_text(SETTINGS.replace("make", "ls"), "utf-8")
    assert rules_in_force(machine) == []
    with machine.app("--demo") as app:
        app.wait_for_all("its own settings", "deny bash(ls:*)")
        app.press("ctrl+c")
        assert app.wait_for_end() == 0


@pytest.mark.parametrize(("options", "is_denied"), [((), False), (("--trust",), True)])
def test_without_a_screen_nothing_is_applied_unless_requested(
    machine: UserMachine, options: tuple[str, ...], is_denied: bool
) -> None:
    bring(machine)
    script = [calls(call("bash", command="make"), call("bash", command="touch made.txt")), says("Done.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "go", "--allow", "bash(make:*)", *options, variables=server.environment)
        make, touch = results_in(bodies_of(server)[-1])

    assert ("denies it" in str(make)) is is_denied
    assert "discarded: made.txt (no one can answer here)" in str(touch)
    assert "discarded 1 changed file" in done.stderr
    assert not (machine.work / "made.txt").exists()


def piped(machine: UserMachine, server: ServerThread, lines: list[dict[str, str]], answer: dict[str, str]) -> list[str]:
    """Control the program line by line; return the types of its events."""
    arguments = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")
    types: list[str] = []
    with machine.piped(*arguments, variables=server.environment) as process:
        for line in lines:
            process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            event = json.loads(line)
            types.append(event["type"])
            if event["type"] == "approval.requested":
                process.stdin.write(json.dumps({**answer, "request_id": event["data"]["request_id"]}) + "\n")
                process.stdin.flush()
            if event["type"] == "run.ended":
                process.stdin.close()
    return types
