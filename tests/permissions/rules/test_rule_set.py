"""Combined verdict of rules."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions import Rule
from tui_agent.permissions.commands.script_reader import UNKNOWN, SimpleCommand, Word
from tui_agent.permissions.path_judge import PathLookup
from tui_agent.permissions.rules.path_resolution import WorkspaceRoots
from tui_agent.permissions.rules.rule import (
    STRICTNESS,
    Finding,
    PartFindings,
    decision_of,
)
from tui_agent.permissions.rules.rule_set import RuleResolution, RuleSet
from tui_agent.protocol.permissions import Verdict


def rules(*texts: str) -> list[Rule]:
    return [Rule.parse(*text.split(" ", 1)) for text in texts]


def book(*layers: Sequence[Rule], resolution: RuleResolution = "first_match") -> RuleSet:
    return RuleSet(layers, WorkspaceRoots("/w"), resolution)


def verdict_of(found: Finding | None) -> Verdict | None:
    return None if found is None else found.decision


def view(*words: str, assigned: str = "") -> SimpleCommand:
    found = [Word(word, word != UNKNOWN, word) for word in words]
    return SimpleCommand(" ".join(words), found, [Word(assigned, True, assigned)] if assigned else [])


def test_a_grant_answers_an_ask_and_nothing_else() -> None:
    asking, denying, open_ = (book(rules(f"{verdict} bash(rm:*)")) for verdict in ("ask", "deny", "ask"))
    for one in (asking, denying, open_):
        one.grants.extend(rules("allow bash(rm x)", "allow bash"))

    granted = asking.judge_command("bash", view("rm", "x"), [])
    assert granted is not None
    assert (granted.decision, granted.source) == ("allow", "grant")
    assert verdict_of(denying.judge_command("bash", view("rm", "x"), [])) == "deny"
    assert verdict_of(open_.judge_command("bash", view(UNKNOWN), [])) == "ask"


def test_only_forbidding_rules_see_equivalent_forms() -> None:
    disguised = view("/bin/rm", assigned="X=1")

    assert verdict_of(book(rules("deny bash(rm)")).judge_command("bash", disguised, [])) == "deny"
    assert verdict_of(book(rules("allow bash(rm)")).judge_command("bash", disguised, [])) is None
    assert verdict_of(book(rules("allow bash(X=1 /bin/rm)")).judge_command("bash", disguised, [])) == "allow"
    assert verdict_of(book(rules("allow bash(X=1:*)")).judge_command("bash", disguised, [])) is None


@table(
    ("rule", "path", "whole", "verdict"),
    [
        ("deny edit(src/**)", "src/lib.py", False, "deny"),
        ("allow edit(src/**)", "src/lib.py", False, "allow"),
        ("deny edit(src/**)", "README.md", False, None),
        ("deny edit(secrets)", "secrets/key.pem", False, "deny"),
        ("deny edit(*.pem)", "secrets", True, None),
        ("deny edit(*.zip)", "secrets", True, None),
        ("allow edit(*.pem)", "secrets", True, None),
        ("allow edit(secrets/**)", "secrets", True, "allow"),
        ("deny edit(/**)", "src", True, "deny"),
        ("deny edit", "src", False, "deny"),
        ("deny read(src/**)", "src/lib.py", False, None),
    ],
)
def test_paths_are_compared_as_given_and_as_resolved(
    desk: Desk, rule: str, path: str, whole: bool, verdict: str | None
) -> None:
    facts = PathLookup(WorkspaceRoots(desk.root)).look(path)
    one = RuleSet([rules(rule)], WorkspaceRoots(desk.root))

    assert verdict_of(one.judge_path("edit", facts, "write", [], whole=whole)) == verdict


def test_a_link_is_denied_under_either_name_and_allowed_only_under_its_own(desk: Desk) -> None:
    facts = PathLookup(WorkspaceRoots(desk.root)).look("links/out/secret.txt")

    def verdict(rule: str) -> str | None:
        return verdict_of(RuleSet([rules(rule)], WorkspaceRoots(desk.root)).judge_path("read", facts, "read", []))

    assert verdict("deny read(links/**)") == "deny"
    assert verdict(f"deny read(/{desk.root.parent}/outside/**)") == "deny"
    assert verdict("allow read(links/**)") is None
    assert verdict(f"allow read(/{desk.root.parent}/outside/**)") == "allow"


@table(
    ("rule", "host", "verdict"),
    [
        ("allow fetch(domain:python.org)", "python.org", "allow"),
        ("allow fetch(domain:python.org)", "docs.python.org", None),
        ("allow fetch(domain:python.org)", "evilpython.org", None),
        ("allow fetch(domain:*.python.org)", "docs.python.org", "allow"),
        ("allow fetch(domain:*.python.org)", "python.org", None),
        ("deny fetch(domain:python.org)", "docs.python.org", "deny"),
        ("deny fetch(domain:python.org)", "python.org.evil.org", None),
        ("deny fetch(domain:Python.org.)", "python.org", "deny"),
        ("allow fetch(domain:python.org)", None, None),
        ("deny fetch(domain:python.org)", None, "ask"),
        ("deny fetch", None, "deny"),
        ("deny bash", "python.org", None),
    ],
)
def test_hosts_are_compared_by_whole_labels(rule: str, host: str | None, verdict: str | None) -> None:
    assert verdict_of(book(rules(rule)).judge_host("fetch", host, [])) == verdict


@table(
    ("rule", "verdict"),
    [("allow todo", "allow"), ("allow todo(x)", None), ("deny todo(x)", "ask"), ("deny bash", None)],
)
def test_a_pattern_on_a_tool_without_a_subject_allows_nothing(rule: str, verdict: str | None) -> None:
    assert verdict_of(book(rules(rule)).judge_host("todo", None, [])) == verdict


one_rule = st.builds(
    lambda verdict, pattern: Rule.parse(verdict, f"bash({pattern})"),
    st.sampled_from(("allow", "ask", "deny")),
    st.sampled_from(("a", "a:*", "b:*", "a b", "a *", "*", "c")),
)
lists = st.lists(st.lists(one_rule, max_size=4), max_size=3)
commands = st.lists(st.sampled_from(("a", "b", "c", UNKNOWN)), min_size=1, max_size=3)


@given(lists, commands, st.sampled_from(("first_match", "severity")))
def test_another_list_never_loosens(layers: list[list[Rule]], words: list[str], resolution: RuleResolution) -> None:
    def strictness(some: Sequence[Sequence[Rule]]) -> int:
        verdict = verdict_of(book(*some, resolution=resolution).judge_command("bash", view(*words), []))
        return -1 if verdict is None else STRICTNESS[verdict]

    for count in range(len(layers)):
        assert strictness(layers[: count + 1]) >= strictness(layers[:count])


@given(lists, commands)
def test_the_strictest_rule_is_at_least_as_strict_as_the_first(layers: list[list[Rule]], words: list[str]) -> None:
    first, strictest = (
        verdict_of(book(*layers, resolution=resolution).judge_command("bash", view(*words), []))
        for resolution in ("first_match", "severity")
    )

    assert (first is None) == (strictest is None)
    if first is not None and strictest is not None:
        assert STRICTNESS[strictest] >= STRICTNESS[first]


@given(lists, commands, one_rule)
def test_a_grant_never_lifts_a_denial(layers: list[list[Rule]], words: list[str], grant: Rule) -> None:
    plain, granted = book(*layers), book(*layers)
    granted.grants.append(Rule.parse("allow", grant.text))
    before, after = (verdict_of(one.judge_command("bash", view(*words), [])) for one in (plain, granted))

    assert after == before or (before in ("ask", None) and after == "allow")


findings = st.builds(
    Finding,
    st.sampled_from(("allow", "ask", "deny")),
    st.sampled_from(("floor", "rule", "read_only", "mode", "grant", "hook", "invalid")),
    st.just("because"),
)
parts = st.lists(st.lists(findings, min_size=1, max_size=4), min_size=1, max_size=4)


@given(parts)
def test_the_strictest_finding_decides_for_all(found: list[list[Finding]]) -> None:
    decision = decision_of([PartFindings("x", tuple(part)) for part in found], ["looked"], ["/a", "/a", "/b"])

    strictest = max(STRICTNESS[finding.decision] for part in found for finding in part)
    assert STRICTNESS[decision.decision] == strictest
    assert [STRICTNESS[part.decision] for part in decision.parts] == [
        max(STRICTNESS[finding.decision] for finding in part) for part in found
    ]
    assert decision.targets == ("/a", "/b")
    assert decision.trace == ("looked",)


@given(parts, findings)
def test_another_finding_never_loosens(found: list[list[Finding]], more: Finding) -> None:
    before = decision_of([PartFindings("x", tuple(part)) for part in found], [])
    after = decision_of([PartFindings("x", (*part, more)) for part in found], [])

    assert STRICTNESS[after.decision] >= STRICTNESS[before.decision]
