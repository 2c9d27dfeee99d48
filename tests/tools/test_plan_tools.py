"""The task list, and a plan that the model hands over: only the user's yes changes the mode."""

from typing import Any

import pytest

from tests.execution.kit import FakePolicy, Ran, call, run
from tests.support.table import table
from tests.tools.calls import Recorded
from tui_agent.context.compaction import build_replacement, cut_result, find_plan
from tui_agent.execution import ApprovalGate
from tui_agent.execution.tool_registry import ToolRegistry
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import PlanProposed, PlanResolved, TodoUpdated
from tui_agent.protocol.messages import AssistantMessage, TextBlock, ToolCall, ToolResultMessage
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.tool_result import ACCEPTED_PLAN, FINAL_TEXT
from tui_agent.tools import PresentPlanTool
from tui_agent.tools.plan_tools import TodoTool, steps_of

PLAN = "# Round once\n\nWhy.\n\n1. Change `price()`\n2. **Adapt** the callers\n   1. of `cart`\n3) Run the tests\n"


async def presented(
    answer: dict[str, Any] | None, mode: PermissionMode = PermissionMode.PLAN
) -> tuple[Ran, FakePolicy]:
    policy = FakePolicy(mode=mode)
    gate = ApprovalGate()
    if answer is not None:
        gate = ApprovalGate(approver=lambda _: ApprovalDecision.model_validate(answer))
    tool = PresentPlanTool(lambda: policy.mode, policy.set_mode)
    return await run([tool], [call("present_plan", plan=PLAN)], policy=policy, gate=gate), policy


@table(
    ("answer", "mode", "words"),
    [
        ({"decision": "approve"}, "ask", "The permission mode is now: ask."),
        ({"decision": "approve", "input": {"mode": "accept_edits"}}, "accept_edits", "now: accept edits."),
        ({"decision": "deny"}, "plan", "The user did not accept this plan. Nothing was started"),
        ({"decision": "deny", "note": "also the docs"}, "plan", "plan mode stays. The user said: also the docs"),
        ({"decision": "skip"}, "plan", "decide yourself"),
        (None, "plan", "No one can answer here. The plan is the result of this run."),
    ],
)
async def test_only_a_yes_changes_the_mode(answer: dict[str, Any] | None, mode: str, words: str) -> None:
    ran, policy = await presented(answer)

    assert (policy.mode.value, words in ran.texts[0]) == (mode, True), ran.texts[0]
    is_yes = answer is not None and answer["decision"] == "approve"
    assert [event.accepted for event in ran.of(PlanResolved)] == [True] * is_yes
    assert [len(event.items) for event in ran.of(TodoUpdated)] == [3] * is_yes
    assert ran.result.terminate is (answer is None)
    details = ran.result.tool_results[0].details or {}
    assert (details.get(FINAL_TEXT) == PLAN.strip()) is (answer is None)


async def test_an_edited_plan_is_the_one_that_counts() -> None:
    edited = "Only this.\n\n- [ ] First\n- [x] Second"
    ran, _ = await presented({"decision": "approve", "input": {"mode": "ask", "plan": edited}})

    assert "The user edited it; this is the plan now:\n\nOnly this." in ran.texts[0]
    assert ran.of(PlanProposed)[0].text == edited
    assert [item.text for item in ran.of(TodoUpdated)[0].items] == ["First", "Second"]


async def test_a_mode_that_the_user_chose_meanwhile_stays_and_the_tool_is_offered_in_plan_mode_only() -> None:
    _, policy = await presented({"decision": "approve", "input": {"mode": "ask"}}, PermissionMode.ALLOW)
    assert policy.mode is PermissionMode.ALLOW

    modes = [PermissionMode.PLAN]
    registry = ToolRegistry([PresentPlanTool(lambda: modes[-1], modes.append)])
    assert [spec.name for spec in registry.specs] == ["present_plan"]
    modes.append(PermissionMode.ASK)
    assert registry.specs == ()
    assert registry.find("present_plan") is not None


def test_steps_are_the_numbered_items_without_markup() -> None:
    assert steps_of(PLAN) == ["Change price()", "Adapt the callers", "Run the tests"]
    assert steps_of("No steps, but 1. in a line.\n- a point") == []


def test_an_accepted_plan_survives_compaction_and_truncation() -> None:
    accepted = ToolResultMessage(
        call_id="p", tool_name="present_plan", content=(TextBlock(text="x" * 50_000),), details={ACCEPTED_PLAN: PLAN}
    )
    cut = cut_result(accepted)
    assert cut is not None
    todo = ToolCall(id="t", name="todo", arguments={"items": [{"text": "Change price()", "status": "done"}]})
    listed = AssistantMessage(content=(todo,), model="m")

    assert find_plan([cut], "todo").endswith(PLAN.strip())
    once = find_plan([cut, listed], "todo")
    assert "Change price()" in once.partition("The user accepted this plan")[0]
    replaced = build_replacement([accepted, listed], "Much was done.", once, 20_000)
    assert find_plan([replaced], "todo") == once.strip()
    again = find_plan([replaced, listed], "todo")
    assert again.count("The user accepted this plan") == 1
    assert "Run the tests" in again


ITEMS = [
    {"text": "look", "status": "done"},
    {"text": " change ", "status": "in_progress"},
    {"text": "test", "status": "pending"},
]

tool = TodoTool()


async def test_emits_the_whole_list() -> None:
    recorded = Recorded()

    result = await tool.execute({"items": ITEMS}, recorded.context)

    items = [ITEMS[0], {"text": "change", "status": "in_progress"}, ITEMS[2]]
    assert recorded.data == [("todo.updated", {"items": items})]
    assert result.details == {"outcome": "1 of 3 done", "items": items}
    assert result.text == "List updated: 1 done, 1 in progress, 1 pending.\n[x] look\n[>] change\n[ ] test"


@table(
    "items",
    [None, [{"text": "x"}], [{"text": " ", "status": "done"}], [{"text": "x", "status": "maybe"}], [ITEMS[0]] * 101],
)
async def test_an_invalid_list_is_refused_and_not_emitted(items: object) -> None:
    recorded = Recorded()

    with pytest.raises(InvalidArgumentsError):
        await tool.execute({"items": items}, recorded.context)

    assert recorded.data == []
