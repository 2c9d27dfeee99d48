"""Options and first arguments of the program, as it and the model see them."""

import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, says, words_in
from .user_machine import UserMachine

pytestmark = pytest.mark.slow


def test_words_without_quotes_are_the_prompt_and_options_reach_the_request(machine: UserMachine) -> None:
    options = ("--effort", "high", "--name", "The  bug", "--max-cost", "2", "--tools", "read, gl*", "--tools", "agent")
    with ServerThread([says("Fixed.")]) as server:
        done = machine.run("-p", *options, "fix", "the", "bug", variables=server.environment)
        (body,) = bodies_of(server)

    assert (done.returncode, done.stdout) == (0, "Fixed.\n")
    assert words_in(body) == ["fix the bug"]
    assert sorted(tool["name"] for tool in body["tools"]) == ["agent", "glob", "read"]
    assert body["output_config"] == {"effort": "high"}
    titles = [event["data"]["title"] for event in machine.events() if event["type"] == "session.renamed"]
    assert titles == ["The bug"]


def test_a_cost_limit_without_a_price_says_so(machine: UserMachine) -> None:
    with ServerThread([says("Done.")]) as server:
        done = machine.run("-p", "x", "--max-cost", "2", "--model", "of-my-own", variables=server.environment)

    assert "the price of of-my-own is unknown, so the cost limit has no effect" in done.stderr.lower()


def test_a_denied_call_is_named_with_the_rule_that_would_allow_it(machine: UserMachine) -> None:
    write = calls(call("write", path="new.txt", content="x\n"))
    rows = (
        ((), "because no one can approve it here: changes new.txt; no rule allows it", "; --allow 'write(/new.txt)'"),
        (("--permission-mode", "deny"), "mode deny refuses changing new.txt", "; --allow 'write(/new.txt)'"),
        (("--deny", "write"), "the rule deny write (--deny) denies it", ""),
    )
    for options, why, rule in rows:
        with ServerThread([write, says("No.")]) as server:
            done = machine.run("-p", "write it", *options, variables=server.environment)
        (note,) = [line for line in done.stderr.splitlines() if "note: write new.txt" in line and "was denied" in line]
        assert why in note
        assert rule in note
        assert ("--allow" in note) == bool(rule)


def test_a_misspelt_command_is_a_question_in_a_terminal(machine: UserMachine) -> None:
    with machine.app("sesions", "list") as app:
        app.wait_for("Did you mean `tui-agent sessions`?")
        app.type("y\r")
        app.wait_for("no sessions")
        assert app.wait_for_end() == 0
    with ServerThread([says("A word.")]) as server, machine.app_on(server, "sesions", "--plain") as app:
        app.wait_for("Did you mean `tui-agent sessions`?")
        app.type("\r")
        app.wait_for("agent: A word.")
        assert words_in(bodies_of(server)[0]) == ["sesions"]
        app.type("/quit\r")
        assert app.wait_for_end() == 0
