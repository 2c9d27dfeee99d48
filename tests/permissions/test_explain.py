"""`permissions check` and `permissions explain`."""

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.table import table
from tui_agent.permissions import PermissionMode, Rule
from tui_agent.permissions.explain import PermissionDefaults, check_record, explain_record

from .command_grammar import any_commands
from .conftest import Desk


def check(desk: Desk, record: object, **defaults: Any) -> dict[str, Any]:
    answer = check_record(
        record,
        find_tool=desk.tools.get,
        defaults=PermissionDefaults(defaults.pop("workspace", desk.root), tool_names=tuple(desk.tools), **defaults),
    )
    json.dumps(answer).encode("utf-8")
    assert set(answer) - {"place"} == {"decision", "source", "reason", "parts"}
    assert answer.get("place", "outside") in ("outside", "trial", "nowhere")
    assert answer["decision"] in ("allow", "ask", "deny")
    assert answer["source"] in ("floor", "rule", "read_only", "mode", "invalid")
    assert isinstance(answer["reason"], str)
    assert answer["reason"]
    for part in answer["parts"]:
        assert set(part) == {"text", "decision", "rule"}
    return answer


def record(command: str, **more: object) -> dict[str, object]:
    return {"tool": "bash", "input": {"command": command}, **more}


def test_the_example_of_the_contract(desk: Desk) -> None:
    rules = [["allow", "bash(git status:*)"]]
    answer = check(desk, record("git status && rm -rf x", mode="ask", rules=rules, cwd=str(desk.root)))

    assert (answer["decision"], answer["source"], answer["place"]) == ("ask", "mode", "outside")
    assert answer["parts"] == [
        {"text": "git status", "decision": "allow", "rule": "bash(git status:*)"},
        {"text": "rm -rf x", "decision": "ask", "rule": None},
    ]


def test_a_record_overrides_rules_mode_and_directory(desk: Desk) -> None:
    configured = {"layers": [[Rule.parse("deny", "bash(make:*)")]], "mode": PermissionMode.DENY}

    assert check(desk, record("make"), **configured)["source"] == "rule"
    assert check(desk, record("make", rules=[]), **configured)["source"] == "mode"
    assert check(desk, record("make", rules=None, mode=None, cwd=None), **configured)["source"] == "rule"
    assert check(desk, record("make", rules=[["allow", "bash"]]), **configured)["decision"] == "allow"
    assert check(desk, record("make", rules=[], mode="allow"), **configured)["decision"] == "allow"
    assert check(desk, record("cat lib.py"), workspace=Path("/"))["decision"] == "allow"
    assert check(desk, record("cat /etc/hostname", cwd="/etc"))["decision"] == "allow"
    assert check(desk, record("cat /etc/hostname"))["decision"] == "ask"


@table(
    ("wrong", "words"),
    [
        (None, "a record must be an object"),
        ([], "a record must be an object"),
        (7, "a record must be an object"),
        ("bash", "a record must be an object"),
        ({}, "`tool` must be the name"),
        ({"tool": "", "input": {}}, "`tool` must be the name"),
        ({"tool": 7, "input": {}}, "`tool` must be the name"),
        ({"tool": "bash"}, "`input` must be an object"),
        ({"tool": "bash", "input": "ls"}, "`input` must be an object"),
        ({"tool": "bash", "input": {}}, "`input` does not fit bash: command: "),
        ({"tool": "bash", "input": {"command": 7}}, "`input` does not fit bash: command: "),
        ({"tool": "bash", "input": {"command": "ls", "x": 1}}, "`input` does not fit bash: x: "),
        (record("ls", cwd="relative"), "`cwd` must be an absolute path"),
        (record("ls", cwd=7), "`cwd` must be an absolute path"),
        (record("ls", cwd="/a\x00b"), "`cwd` must be an absolute path"),
        (record("ls", cwd="/\ud800"), "`cwd` must be an absolute path"),
        (record("ls", mode="yolo"), "`mode` must be one of ask, allow, deny, plan, accept_edits"),
        (record("ls", mode=[]), "`mode` must be one of"),
        (record("ls", mode={"a": 1}), "`mode` must be one of"),
        (record("ls", rules={"allow": "bash"}), "`rules` must be a list"),
        (record("ls", rules="allow bash"), "`rules` must be a list"),
        (record("ls", rules=[["allow"]]), "rule 1 must be a [verdict, rule] pair"),
        (record("ls", rules=[["allow", "bash"], "x"]), "rule 2 must be a [verdict, rule] pair"),
        (record("ls", rules=[["allow", 7]]), "rule 1 must be a [verdict, rule] pair"),
        (record("ls", rules=[["maybe", "bash"]]), "a rule must say allow, ask or deny"),
        (record("ls", rules=[["allow", "bash("]]), "a rule must be `tool` or `tool(pattern)`"),
    ],
)
def test_an_invalid_record_is_denied_with_the_reason(desk: Desk, wrong: object, words: str) -> None:
    answer = check(desk, wrong)

    assert (answer["decision"], answer["source"], answer["parts"]) == ("deny", "invalid", [])
    assert words in answer["reason"]


def test_surrogates_are_replaced_in_the_answer(desk: Desk) -> None:
    assert check(desk, record("echo \ud800"))["source"] == "invalid"
    assert check(desk, {"tool": "read", "input": {"path": "a\udc80"}})["decision"] in ("allow", "ask")
    assert check(desk, {"tool": "bash\udc80", "input": {}})["decision"] == "ask"
    assert check(desk, {"tool": "bash", "input": {"\ud800": 1}})["source"] == "invalid"
    assert check(desk, record("ls", rules=[["allow", "\ud800("]]))["source"] == "invalid"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(("bash", "ask", "/")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
fields = st.fixed_dictionaries(
    {},
    optional={
        "tool": st.sampled_from(("bash", "read", "write", "fetch", "todo", "other")) | json_values,
        "input": st.builds(lambda command: {"command": command}, st.text(max_size=20) | json_values)
        | st.builds(lambda path: {"path": path}, st.text(max_size=20) | json_values)
        | json_values,
        "mode": st.sampled_from(list(PermissionMode)) | json_values,
        "rules": st.lists(st.tuples(st.sampled_from(("allow", "deny", "x")), st.text(max_size=9)).map(list))
        | json_values,
        "cwd": st.sampled_from(("/", "/nowhere", "x")) | json_values,
    },
)


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=fields | json_values)
def test_any_json_gets_an_answer(desk: Desk, found: object) -> None:
    check(desk, found)
    assert explain_record(found, find_tool=desk.tools.get, defaults=PermissionDefaults(desk.root))


def explain(desk: Desk, found: object, **defaults: Any) -> str:
    return explain_record(found, find_tool=desk.tools.get, defaults=PermissionDefaults(desk.root, **defaults))


def test_explain_names_every_rule_and_the_alternatives(desk: Desk) -> None:
    rules = [Rule.parse("deny", "bash(rm:*)", "config.toml:3"), Rule.parse("ask", "bash(make:*)", "config.toml:4")]
    words = explain(desk, record("make all"), layers=[rules])

    assert words.splitlines()[0].startswith("ask (rule): a rule says to ask first: bash(make:*) (config.toml:4)")
    assert "deny bash(rm:*) (config.toml:3): does not match 'make all'" in words
    assert "ask bash(make:*) (config.toml:4): matches 'make all'" in words
    assert "Place: outside, with your own rights" in words
    assert "mode plan: deny" in words
    assert "without the rule bash(make:*) (config.toml:4)" in words
    assert 'rule ["allow", "bash(make:*)"]: allow' in words


@table(
    ("command", "words"),
    [
        ("python3 x", "no single rule is narrow enough to offer"),
        ("rm .git/index.lock", 'rule ["allow", "bash(rm .git/index.lock)"]: allow'),
        ("touch $X", "no single rule is narrow enough to offer"),
        ("echo x > .git/config", "no single rule is narrow enough to offer"),
        ("git status", "nothing: the decision is the same in every mode"),
        ("if then (((", "no single rule is narrow enough to offer"),
        ("make", "where a trial works: it runs there, and its changes are kept afterwards"),
    ],
)
def test_explain_says_if_no_rule_helps(desk: Desk, command: str, words: str) -> None:
    assert words in explain(desk, record(command))


def test_explain_of_an_invalid_record(desk: Desk) -> None:
    assert explain(desk, []).startswith("deny (invalid): a record must be an object")


@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(command=any_commands)
def test_what_explain_proposes_allows_the_call(desk: Desk, command: str) -> None:
    policy = desk.policy()
    proposed = policy.grant_rule(desk.tools["bash"], {"command": command})
    if proposed is not None:
        policy.grant(proposed, "session")
        assert policy.check(desk.tools["bash"], {"command": command}).decision == "allow"
