from collections.abc import Callable
from typing import Any

import pytest

from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import HookBus
from tui_agent.execution.hook_dispatch import (
    HookVerdict,
    allows_update,
    ask_about_failure,
    ask_after_tool,
    ask_before_tool,
    observe_update,
)
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import HookEnded, HookFailed
from tui_agent.protocol.hooks import (
    ApproveCall,
    BeforeUpdate,
    Continue,
    DenyCall,
    FailureAnswer,
    ModifyArguments,
    RequireApproval,
    ToolFailed,
)
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.tool import ToolResult

CALL = ToolCall(id="c", name="act", arguments={"n": {"deep": 1}})


class Heard:
    """Bus and the events published on it."""

    def __init__(self) -> None:
        self.bus = ValidatingBus(whole=False)
        self._subscription = self.bus.subscribe(merge=False)

    def events(self) -> list[Any]:
        return [envelope.event for envelope in self._subscription.drain()]


def hooked(event: str, *functions: Callable[[Any], object], **settings: Any) -> HookBus:
    hooks = HookBus()
    for number, function in enumerate(functions):
        hooks.add(event, function, name=f"h{number}", **settings)
    return hooks


async def before(*functions: Callable[[Any], object], **settings: Any) -> tuple[HookVerdict, list[Any]]:
    heard = Heard()
    hooks = hooked("before_tool", *functions, **settings)
    verdict = await ask_before_tool(hooks, CALL, None, CALL.arguments, heard.bus)
    return verdict, heard.events()


@pytest.mark.parametrize("hook", [lambda question: 1 / 0, lambda question: "yes"])
async def test_a_failing_hook_denies_and_is_distinguished_from_an_answer(hook: Any) -> None:
    verdict, events = await before(hook)

    assert isinstance(verdict.answer, DenyCall)
    assert verdict.failed
    assert verdict.answer.reason.startswith("Hook h0 failed")
    assert isinstance(events[1], HookFailed)
    assert not events[1].fail_open


async def test_a_failing_lenient_after_hook_leaves_the_result() -> None:
    hooks = hooked("after_tool", lambda question: 1 / 0, fail_open=True)

    answer = await ask_after_tool(hooks, CALL, {}, ToolResult.of_text("done"), Heard().bus)

    assert isinstance(answer, ToolResult)
    assert answer.text == "done"


async def test_the_first_fallback_counts_and_any_hook_may_end_the_run() -> None:
    errors: list[str] = []
    hooks = hooked(
        "on_tool_error",
        lambda question: errors.append(question.error),
        lambda question: FailureAnswer(fallback=ToolResult.of_text("one")),
        lambda question: FailureAnswer(fallback=ToolResult.of_text("two"), continue_on_error=False),
        lambda question: 1 / 0,
        lambda question: "nonsense",
    )
    heard = Heard()

    answer = await ask_about_failure(hooks, CALL, "boom", heard.bus)

    assert errors == ["boom"]
    assert answer == FailureAnswer(ToolResult.of_text("one"), continue_on_error=False)
    ended = [event for event in heard.events() if isinstance(event, HookEnded)]
    assert [(event.action, event.reason) for event in ended] == [
        ("allow", ""),
        ("override", ""),
        ("override", "the run ends"),
    ]
    assert ToolFailed(CALL, "boom").error == "boom"


@pytest.mark.parametrize(
    ("hook", "allowed", "warnings"),
    [
        (lambda question: None, True, 0),
        (lambda question: True, True, 0),
        (lambda question: False, False, 0),
        (lambda question: 1 / 0, False, 1),
    ],
)
async def test_a_denial_and_a_failure_suppress_an_update(hook: Any, allowed: bool, warnings: int) -> None:
    heard = Heard()

    assert await allows_update(hooked("before_update", hook), CALL, "text", heard.bus) is allowed
    assert len(heard.events()) == warnings


async def test_an_observer_of_updates_receives_the_text_and_may_fail() -> None:
    seen: list[BeforeUpdate] = []
    heard = Heard()

    await observe_update(hooked("after_update", seen.append, lambda q: 1 / 0), CALL, "text", heard.bus)

    assert seen == [BeforeUpdate(CALL, "text")]
    failed = heard.events()
    assert [(event.type, event.event, event.fail_open) for event in failed] == [("hook.failed", "after_update", True)]


async def test_an_approval_does_not_cover_arguments_that_a_later_hook_writes() -> None:
    verdict, _ = await before(lambda _: ApproveCall("fine"), lambda _: ModifyArguments({"n": 2}), may_approve=True)

    assert (verdict.answer, verdict.may_approve, verdict.arguments) == (Continue(), False, {"n": 2})


async def test_a_question_for_the_user_outlasts_a_later_approval() -> None:
    verdict, events = await before(lambda _: RequireApproval("look"), lambda _: ApproveCall("fine"), may_approve=True)

    assert (verdict.answer, verdict.may_approve) == (RequireApproval("look"), False)
    assert [event.action for event in events if isinstance(event, HookEnded)] == ["allow", "allow"]


async def test_a_hook_is_asked_only_about_what_it_applies_to() -> None:
    verdict, events = await before(lambda _: DenyCall("no"), applies=lambda question: question.call.name != "act")
    heard = Heard()
    other = hooked("after_tool", lambda _: "other", applies=lambda question: question.result.is_error)
    result = await ask_after_tool(other, CALL, {}, ToolResult.of_text("done"), heard.bus)

    assert (verdict.answer, events) == (Continue(), [])
    assert (isinstance(result, ToolResult) and result.text, heard.events()) == ("done", [])


@pytest.mark.parametrize(
    ("event", "hook", "options", "words"),
    [
        ("befor_tool", print, {}, "before_tool"),
        ("zzz", print, {}, "after_tool_observer"),
        ("before_tool", None, {}, "must be a function"),
        ("after_tool", print, {"with_input": True}, "needs an after_tool_observer"),
        ("before_tool", print, {"hides": True}, "hides needs an after_tool hook that is not fail_open"),
        (
            "after_tool",
            print,
            {"hides": True, "fail_open": True},
            "hides needs an after_tool hook that is not fail_open",
        ),
    ],
)
def test_a_hook_that_would_never_do_what_it_says_is_refused(
    event: str, hook: Any, options: dict[str, bool], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        HookBus().add(event, hook, **options)


def test_hooks_keep_their_order_and_can_be_removed() -> None:
    hooks = HookBus(timeout=7.0)
    remove = hooks.add("before_tool", lambda question: None, name="first")
    hooks.add("before_tool", lambda question: None, name="second", timeout=1.0, fail_open=True)

    first, second = hooks.hooks("before_tool")
    assert (first.name, first.timeout, first.fail_open) == ("first", 7.0, False)
    assert (second.name, second.timeout, second.fail_open) == ("second", 1.0, True)

    remove()
    remove()
    assert [hook.name for hook in hooks.hooks("before_tool")] == ["second"]
    assert (hooks.has("before_tool"), hooks.has("after_tool")) == (True, False)


def test_a_bus_takes_the_hooks_of_another_one_but_not_their_right_to_approve() -> None:
    own, other = HookBus(), HookBus(timeout=3.0)
    own.add("before_tool", print, name="mine")
    other.add("before_tool", print, name="theirs", may_approve=True, fail_open=True)
    other.add("after_tool", print, name="result", hides=True)

    own.include(other, "acme")

    assert [(hook.name, hook.may_approve) for hook in own.hooks("before_tool")] == [
        ("mine", False),
        ("acme: theirs", False),
    ]
    (result,) = own.hooks("after_tool")
    assert (result.name, result.timeout, result.hides) == ("acme: result", 3.0, True)
    assert own.events == {"before_tool", "after_tool"}
    assert [hook.name for hook in other.hooks("before_tool")] == ["theirs"], "the other bus stays as it was"
