"""Combination of findings into one decision."""

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.permissions import Rule
from tui_agent.permissions.rules.verdicts import (
    MAX_TRACE,
    STRICTNESS,
    Finding,
    PartFindings,
    decision_of,
    finding_for_rule,
    invalid,
)

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


def test_among_equals_the_hardest_to_override_decides() -> None:
    floor, mode = Finding("deny", "floor", "a"), Finding("deny", "mode", "b")

    assert PartFindings("x", (mode, floor)).deciding == floor


def test_among_equals_a_reason_that_names_a_place_outside_the_workspace_decides() -> None:
    changes, outside = Finding("ask", "mode", "a"), Finding("ask", "mode", "b", is_outside=True)

    assert PartFindings("x", (changes, outside)).deciding == outside
    assert PartFindings("x", (Finding("ask", "rule", "c"), outside)).deciding.reason == "c"


def test_the_part_that_was_hardest_to_allow_gives_the_reason() -> None:
    reads, ruled = Finding("allow", "read_only", "reads"), Finding("allow", "rule", "ruled", Rule.parse("allow", "x"))
    decision = decision_of([PartFindings("a", (reads,)), PartFindings("b", (ruled,))], [])

    assert (decision.source, decision.rule) == ("rule", "x")


def test_findings_of_rules_name_their_origin() -> None:
    rule = Rule.parse("deny", "bash(rm:*)", "config.toml:4")

    denied = Finding("deny", "rule", "the rule deny bash(rm:*) (config.toml:4) denies it", rule)
    assert finding_for_rule(rule) == denied
    assert decision_of([PartFindings("rm x", (denied,))], []).rule == "bash(rm:*) (config.toml:4)"
    opened = finding_for_rule(rule, is_open=True)
    assert opened.decision == "ask"
    assert opened.reason == (
        "the rule deny bash(rm:*) (config.toml:4) may apply: that depends on values known only when the command runs"
    )
    assert finding_for_rule(Rule.parse("allow", "bash"), is_grant=True).source == "grant"


def test_a_trace_is_shortened_and_invalid_input_is_denied() -> None:
    part = PartFindings("x", (Finding("allow", "mode", "y"),))

    assert decision_of([part], ["x"] * MAX_TRACE).trace == ("x",) * MAX_TRACE
    assert decision_of([part], ["x"] * (MAX_TRACE + 5)).trace[-1] == "… and 5 more lines"
    assert (invalid("no call").decision, invalid("no call").source) == ("deny", "invalid")
