"""The checker: floor, rules, read-only relaxation, mode, in this order."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.sample_tools import SamplePlainTool
from tests.support.table import table
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule
from tui_agent.permissions.policy import subject_of
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import GrantScope
from tui_agent.protocol.tool import PathSubject, Subject

from .conftest import Desk


@pytest.mark.parametrize("mode", [PermissionMode.ACCEPT_EDITS, PermissionMode.ALLOW])
@pytest.mark.parametrize(
    ("tool", "call"),
    [
        ("write", {"path": ".claude/commands/x.md"}),
        ("write", {"path": ".claude/settings.json"}),
        ("write", {"path": ".agents/skills/x/SKILL.md"}),
        ("write", {"path": "dotfiles/x.md"}),
    ],
)
def test_definitions_of_the_user_are_never_changed_without_a_question(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, mode: PermissionMode, tool: str, call: JsonObject
) -> None:
    monkeypatch.setenv("HOME", str(desk.root))
    (desk.root / "dotfiles").mkdir()
    (desk.root / ".claude").mkdir()
    (desk.root / ".claude" / "agents").symlink_to(desk.root / "dotfiles")
    policy = desk.policy("allow write", "allow bash(cp:*)")

    assert policy.check_in_mode(desk.tools[tool], call, mode).decision == "ask"
    assert policy.check_in_mode(desk.tools[tool], call, PermissionMode.DENY).decision == "deny"
    assert policy.check_in_mode(desk.tools["write"], {"path": "b.py"}, mode).decision == "allow"
    if tool == "write":
        named = desk.policy(f"allow write({call['path']})")
        assert named.check_in_mode(desk.tools[tool], call, mode).decision == "allow"


@table(
    ("tool", "call"),
    [
        *(
            ("write", {"path": path})
            for path in (
                ".claude/settings.json",
                ".Claude/settings.local.json",
                ".claude/hooks/a/b.sh",
                "a/.claude/skills/x",
            )
        ),
        ("write", {"path": ".agents/skills/x/SKILL.md"}),
        ("bash", {"command": "cd .claude && echo x > settings.json"}),
        ("bash", {"command": "perl -i -pe s/2/0/ .claude/hooks/guard.py"}),
        ("bash", {"command": "f=.claude/commands/x.md; cp README.md $f"}),
        ("bash", {"command": "rm -rf .claude"}),
        ("bash", {"command": 'python3 -c \'open(".claude/settings.json", "w")\''}),
    ],
)
def test_what_agents_take_from_a_project_is_never_changed_without_a_question(
    desk: Desk, tool: str, call: JsonObject
) -> None:
    policy = desk.policy("allow write", "allow bash(cp:*)", "allow bash(sed:*)")

    for mode in (PermissionMode.ACCEPT_EDITS, PermissionMode.ALLOW):
        assert policy.check_in_mode(desk.tools[tool], call, mode).decision == "ask"
    notes = {"path": ".claude/notes.md"}
    assert policy.check_in_mode(desk.tools["write"], notes, PermissionMode.ALLOW).decision == "allow"


def test_layers_tighten_one_another(desk: Desk) -> None:
    layers = ([Rule.parse("allow", "bash(make:*)")], [Rule.parse("deny", "bash(make install)")])
    policy = PermissionPolicy(desk.root, rules=[Rule.parse("ask", "write")], layers=layers)

    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "allow"
    assert policy.check(desk.tools["bash"], {"command": "make install"}).decision == "deny"
    assert policy.check(desk.tools["write"], {"path": "x"}).source == "rule"


@table(
    ("tool", "arguments", "mode", "is_floor"),
    [
        ("write", {"path": ".git/config"}, "allow", True),
        ("write", {"path": "x"}, "plan", True),
        ("bash", {"command": "curl x"}, "allow", True),
        ("bash", {"command": "make"}, "deny", False),
        ("read", {"path": "README.md"}, "ask", False),
        ("bash", {"command": "ls\x00"}, "allow", True),
    ],
)
def test_the_floor_is_what_nothing_can_override(
    desk: Desk, tool: str, arguments: dict[str, object], mode: str, is_floor: bool
) -> None:
    found = desk.policy("deny bash(curl:*)", mode=mode).floor(desk.tools[tool], arguments)

    assert (found is not None) is is_floor


@table(
    ("tool", "arguments", "rule"),
    [
        ("bash", {"command": "npm run build -- -x"}, "bash(npm run build:*)"),
        ("bash", {"command": "make all && ls | head"}, "bash(make:*)"),
        ("bash", {"command": "make a && make b"}, "bash(make:*)"),
        ("bash", {"command": "cp a b && touch c"}, "bash(cp a b)\nbash(touch c)"),
        ("bash", {"command": "touch new.txt"}, "bash(touch new.txt)"),
        ("bash", {"command": "touch ../new.txt"}, "bash(touch ../new.txt)"),
        ("bash", {"command": "make > out.txt"}, None),
        ("bash", {"command": "cat /etc/hostname"}, "bash(cat /etc/hostname)"),
        ("bash", {"command": "rm -rf build"}, "bash(rm -rf build)"),
        ("bash", {"command": "ls"}, None),
        ("bash", {"command": "; ".join(f"touch {n}" for n in range(9))}, None),
        ("write", {"path": "src/new.py"}, "edit(/**)"),
        ("write", {"path": ".a[1]"}, "write(/.a\\[1\\])"),
        ("read", {"path": "/etc/hostname"}, "read(//etc/hostname)"),
        ("write", {"path": ".git/x"}, None),
        ("fetch", {"url": "https://docs.python.org/3/"}, "fetch(domain:docs.python.org)"),
        ("fetch", {"url": "https://user@python.org"}, None),
    ],
)
def test_the_narrowest_rule_is_proposed_and_allows_the_call(
    desk: Desk, tool: str, arguments: dict[str, object], rule: str | None
) -> None:
    policy = desk.policy()
    proposed = policy.grant_rule(desk.tools[tool], arguments)
    assert proposed == rule
    assert policy.check(desk.tools[tool], arguments).source != "grant", "asking stores nothing"
    if proposed is not None:
        policy.grant(proposed, "session")
        assert policy.check(desk.tools[tool], arguments).decision == "allow"


@pytest.mark.parametrize("scope", ["project", "user"])
def test_deleting_a_stored_grants_rule_revokes_it(desk: Desk, scope: GrantScope) -> None:
    policy = PermissionPolicy(desk.root, store_grant=lambda rules, scope: "a.toml")
    policy.grant("bash(make)", scope)
    policy.grant("bash(make all)", "session")
    ask = Rule.parse("ask", "bash")

    policy.set_rules([[Rule.parse("allow", "bash(make)", "a.toml:1")], [ask]])
    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "allow"

    policy.set_rules([[ask]])
    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "ask"
    assert policy.check(desk.tools["bash"], {"command": "make all"}).decision == "allow"


def test_a_tool_without_a_subject_is_granted_by_its_name(desk: Desk) -> None:
    policy = desk.policy("ask todo")

    assert policy.grant_rule(desk.tools["todo"], {}) == "todo"


def test_a_grant_for_once_stores_nothing(desk: Desk) -> None:
    policy = desk.policy()
    policy.grant("bash(make)", "once")

    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "ask"


def test_a_grant_beyond_the_session_needs_a_store(desk: Desk) -> None:
    with pytest.raises(ConfigurationError, match="cannot be stored for the project"):
        desk.policy().grant("bash(make)", "project")

    kept: list[tuple[str, GrantScope]] = []

    def keep(rules: Sequence[Rule], scope: GrantScope) -> str:
        kept.extend((rule.text, scope) for rule in rules)
        return "a.toml"

    policy = PermissionPolicy(desk.root, store_grant=keep)
    assert policy.grant("bash(make)\nedit(/x)", "project") == "a.toml"
    assert kept == [("bash(make)", "project"), ("edit(/x)", "project")]
    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "allow"


def test_a_grant_that_cannot_be_stored_does_not_apply(desk: Desk) -> None:
    def fail(rules: Sequence[Rule], scope: GrantScope) -> str:
        raise ConfigurationError("the disk is full")

    policy = PermissionPolicy(desk.root, store_grant=fail)
    with pytest.raises(ConfigurationError, match="disk"):
        policy.grant("bash(make)", "user")
    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "ask"


@table("rule", ["", "\n", "bash(", "bash(make)\nbash("])
def test_an_unreadable_grant_is_refused_as_a_whole(desk: Desk, rule: str) -> None:
    policy = desk.policy()
    with pytest.raises(ConfigurationError):
        policy.grant(rule, "session")

    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "ask"


def test_a_rule_of_the_session_is_added_once_and_can_be_removed(desk: Desk) -> None:
    policy = desk.policy()
    for verdict in ("allow", "deny"):
        assert policy.add_session_rule(verdict, "bash(make)") is not None
        assert policy.add_session_rule(verdict, "bash(make)") is None
        assert policy.check(desk.tools["bash"], {"command": "make"}).decision == verdict

    assert policy.remove_session_rule("deny", "bash(make)")
    assert not policy.remove_session_rule("deny", "bash(make)")
    assert policy.check(desk.tools["bash"], {"command": "make"}).decision == "allow"
    assert policy.remove_session_rule("allow", "bash(make)")
    assert policy.session_rules == ()


def test_a_search_leaves_out_what_a_rule_denies_and_an_earlier_one_does_not_allow(desk: Desk) -> None:
    policy = desk.policy("allow read(secrets/public/**)", "deny read(secrets/**)")
    is_denied = policy.denied_below(desk.tools["read"], {"path": "."})

    assert is_denied("secrets/key.pem")
    assert not is_denied("secrets/public/key.pem")
    assert not is_denied("src/lib.py")
    assert not policy.denied_below(desk.tools["bash"], {"command": "ls"})("secrets/key.pem")


@table(
    ("arguments", "words"),
    [
        ({"workspace": 3}, "PermissionPolicy.workspace must be a path, got 3"),
        ({"rules": "allow bash"}, "PermissionPolicy.rules must be a list of rules such as"),
        ({"rules": ["allow bash", "alow ls"]}, "PermissionPolicy.rules[1]: a rule must begin with allow, ask or deny"),
        ({"rules": [3]}, "PermissionPolicy.rules[0]: a rule must be a text such as"),
        ({"rules": {"bash": "allow"}}, "PermissionPolicy.rules must be a list of rules"),
        ({"layers": ["allow bash"]}, "PermissionPolicy.layers[0] must be a list of rules"),
        ({"layers": [["allow bash("]]}, "PermissionPolicy.layers[0][0]: a rule must be `tool` or `tool(pattern)`"),
        ({"mode": "bogus"}, "unknown PermissionPolicy.mode 'bogus'; did you mean ask or allow or"),
        ({"mode": "acceptedits"}, "did you mean accept_edits?"),
        ({"mode": None}, "unknown PermissionPolicy.mode None"),
        ({"resolution": "first"}, "unknown PermissionPolicy.resolution 'first'; did you mean first_match"),
        ({"private_paths": "/etc"}, "PermissionPolicy.private_paths must be a list of paths, got '/etc'"),
        ({"readable_paths": [3]}, "PermissionPolicy.readable_paths[0] must be a path, got 3"),
        ({"relaxed_reads": "no"}, "PermissionPolicy.relaxed_reads must be True or False, got 'no'"),
        ({"is_trusted": 1}, "PermissionPolicy.is_trusted must be True or False, got 1"),
        ({"store_grant": "file"}, "PermissionPolicy.store_grant must be a function or None, got 'file'"),
        ({"trial": "required"}, "PermissionPolicy.trial must be a TrialFacts, got 'required'"),
    ],
)
def test_an_argument_of_the_wrong_kind_is_refused(desk: Desk, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        PermissionPolicy(**{"workspace": desk.root, **arguments})
    assert words in str(caught.value)


def test_unreadable_rules_leave_those_in_force(desk: Desk) -> None:
    policy = PermissionPolicy(desk.root, rules=["deny bash(rm:*)"])

    with pytest.raises(ConfigurationError, match="layers"):
        policy.set_rules([["deny bash(curl:*)"], ["dney bash"]])
    with pytest.raises(ConfigurationError, match=r"unknown permission mode 'alow'; did you mean allow\?"):
        policy.set_mode("alow")

    assert [rule.shown for rule in policy.rules] == ["deny bash(rm:*)"]
    assert policy.mode is PermissionMode.ASK


def test_the_mode_is_read_at_the_moment_of_decision(desk: Desk) -> None:
    policy = desk.policy()
    call = {"path": "a.py"}
    assert policy.check(desk.tools["write"], call).decision == "ask"

    policy.set_mode(PermissionMode.ACCEPT_EDITS)
    assert policy.mode is PermissionMode.ACCEPT_EDITS
    assert policy.check(desk.tools["write"], call).decision == "allow"
    assert policy.check_in_mode(desk.tools["write"], call, PermissionMode.PLAN).decision == "deny"
    assert policy.mode is PermissionMode.ACCEPT_EDITS


class Confused(SamplePlainTool):
    """A tool whose predicates raise."""

    def __init__(self, error: Exception, *, only_reading: bool = False) -> None:
        super().__init__("confused")
        self._error = error
        self._only_reading = only_reading

    def subject(self, arguments: JsonObject) -> Subject | None:
        if self._only_reading:
            return PathSubject("README.md", "read")
        raise self._error

    def is_read_only(self, arguments: JsonObject) -> bool:
        raise self._error


@table("error", [KeyError("path"), TypeError("no"), OSError("gone"), ToolError("x"), RecursionError()])
def test_a_tool_that_cannot_declare_a_subject_is_refused(desk: Desk, error: Exception) -> None:
    decision = desk.policy(mode="allow").check(Confused(error), {})

    assert (decision.decision, decision.source) == ("deny", "invalid")
    assert subject_of(Confused(error), {}) is None


def test_a_tool_whose_read_only_check_fails_counts_as_writing(desk: Desk) -> None:
    tool = Confused(ValueError("x"), only_reading=True)

    assert desk.policy().check(tool, {}).decision == "ask"
    assert desk.policy(mode="plan").check(tool, {}).decision == "deny"


@table(
    ("mode", "reading", "writing"),
    [
        ("ask", "allow", "ask"),
        ("allow", "allow", "allow"),
        ("deny", "allow", "deny"),
        ("plan", "allow", "deny"),
        ("accept_edits", "allow", "ask"),
    ],
)
def test_a_tool_without_a_subject(desk: Desk, mode: str, reading: str, writing: str) -> None:
    policy = desk.policy(mode=mode)

    assert policy.check(SamplePlainTool("look", read_only=True), {}).decision == reading
    assert policy.check(SamplePlainTool("change"), {}).decision == writing


def test_a_servers_tool_cannot_loosen_its_own_decision(desk: Desk) -> None:
    tool = SamplePlainTool("mcp__files__list", read_only=True)

    assert desk.policy().check(tool, {}).decision == "ask"
    assert desk.policy("allow mcp__files__*").check(tool, {}).decision == "allow"
    assert desk.policy(mode="deny").check(tool, {}).decision == "deny"


def test_a_path_with_a_nul_is_invalid(desk: Desk) -> None:
    assert desk.file("read", "a\x00b", mode="allow").source == "invalid"
