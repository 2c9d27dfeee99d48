"""Options and first arguments of the program, as it and the model see them."""

import json

import pytest

from tests.support.server_thread import ServerThread

from .script import bodies_of, call, calls, fails, says, words_in
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


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"type": ["integer", "null"], "minimum": 1}},
    "required": ["name"],
}


def test_a_schema_that_the_endpoint_refuses_is_only_checked_and_a_wrong_answer_asked_for_once_more(
    machine: UserMachine,
) -> None:
    machine.file("schema.json", json.dumps(SCHEMA))
    refusal = fails(400, "invalid_request_error") | {"error_message": "output_config.format.schema: too complex"}
    answers = [says('{"count": 0}'), says('```json\n{"name": "é", "count": 2}\n```')]
    options = ("--json-schema", "schema.json", "--output-format", "json")
    with ServerThread([refusal, *answers]) as server:
        done = machine.run("-p", "count them", *options, variables=server.environment)
        first, again, second = bodies_of(server)

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["structured_output"] == {"name": "é", "count": 2}
    assert "output_config" not in again
    sent = first["output_config"]["format"]
    assert sent["type"] == "json_schema"
    assert sent["schema"]["additionalProperties"] is False
    assert sent["schema"]["properties"]["count"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert '"minimum": 1' in "".join(part["text"] for part in first["system"])
    assert "- count: 0 is less than the minimum of 1" in words_in(second)[-1]


def test_a_safe_start_uses_nothing_but_rules_that_deny_or_ask(machine: UserMachine) -> None:
    settings = machine.home / ".config/tui-agent"
    (settings / "skills/own").mkdir(parents=True)
    (machine.work / ".claude").mkdir()
    own_hook = '[[hooks]]\non = "before_tool"\ncommand = "touch hook-ran"\n'
    own_rules = 'rules = [["deny", "read(secret.txt)"], ["allow", "write"]]\n'
    (settings / "config.toml").write_text(f'append_system = "Own."\n[permissions]\n{own_rules}{own_hook}', "utf-8")
    (settings / "AGENTS.md").write_text("Own instructions.\n", "utf-8")
    (settings / "skills/own/SKILL.md").write_text("---\nname: own\ndescription: Own skill.\n---\nDo.\n", "utf-8")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "touch hook-ran"}]}]}
    (machine.home / ".claude").mkdir()
    (machine.home / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}), "utf-8")
    machine.file("AGENTS.md", "Project instructions.\n")
    machine.file(".mcp.json", json.dumps({"mcpServers": {"gone": {"command": "no-such-program"}}}))
    machine.file("secret.txt", "s\n")
    script = [calls(call("read", path="secret.txt"), call("write", path="new.txt", content="x\n")), says("Done.")]
    with ServerThread(script) as server:
        done = machine.run("-p", "x", "--safe", variables=server.environment)
        first, _ = bodies_of(server)

    system = "".join(part["text"] for part in first["system"])
    assert not [text for text in ("Own.", "Own instructions", "Own skill", "Project instructions") if text in system]
    assert not (machine.work / "hook-ran").exists()
    assert "the rule deny read(secret.txt)" in done.stderr
    assert "write new.txt (1 line) was denied, because no one can approve it here" in done.stderr
    assert "gone" not in done.stderr
    (settings / "config.toml").write_text("broken =\n", "utf-8")
    with ServerThread([says("Starts.")]) as server:
        done = machine.run("-p", "x", "--safe", variables=server.environment)
    assert (done.returncode, done.stdout) == (0, "Starts.\n")
    assert "With --safe nothing of it is used, also none of its rules that deny or ask." in done.stderr
