"""Calls are counted under the rule that decided them."""

from tests.ui.story import Story
from tui_agent.permissions.rules.rule import finding_for_mode
from tui_agent.protocol.events import PermissionDecided
from tui_agent.protocol.permissions import DecisionPart, PermissionMode
from tui_agent.ui.state.approval_folds import FLOOR_ASKS, RuleHits


def test_each_rule_behind_a_part_counts_a_call_once() -> None:
    hits, story = RuleHits(), Story()
    parts = (
        DecisionPart(text="a", decision="allow", rule="bash(a:*) (x:1)"),
        DecisionPart(text="b", decision="ask"),
        DecisionPart(text="a", decision="allow", rule="bash(a:*) (x:1)"),
    )
    told = [
        PermissionDecided(call_id="c1", decision="ask", source="mode", mode=PermissionMode.ASK, parts=parts),
        PermissionDecided(call_id="c2", decision="deny", source="rule", mode=PermissionMode.ASK, rule="r (x:2)"),
        PermissionDecided(call_id="c2", decision="deny", source="rule", mode=PermissionMode.ASK, rule="r (x:2)"),
        PermissionDecided(call_id="c3", decision="deny", source="floor", mode=PermissionMode.PLAN),
    ]
    for event in told:
        assert hits.apply(story.tell(event))

    assert not hits.apply(story.envelopes[0])
    assert hits.of("bash(a:*) (x:1)") == ("c1",)
    assert hits.of("mode") == ("c1",)
    assert hits.of("r (x:2)") == ("c2",)
    assert hits.of("floor") == ("c3",)
    assert hits.of("unknown") == ()
    assert hits.total == 4


def test_a_question_of_the_floor_and_a_denial_by_plan_mode_are_not_counted_as_protected_paths() -> None:
    hits, story = RuleHits(), Story()
    denied = PermissionDecided(call_id="c1", decision="deny", source="floor", mode=PermissionMode.PLAN)
    planned = finding_for_mode(PermissionMode.PLAN, "effect", "changing a.py").reason
    told = [
        denied.model_copy(update={"reason": ".git/config is protected and never changed"}),
        denied.model_copy(update={"call_id": "c2", "decision": "ask", "reason": "sessions is private"}),
        denied.model_copy(update={"call_id": "c3", "reason": planned}),
    ]
    for event in told:
        hits.apply(story.tell(event))

    assert [hits.of(key) for key in ("floor", FLOOR_ASKS, "mode")] == [("c1",), ("c2",), ("c3",)]
