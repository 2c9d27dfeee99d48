from pathlib import Path
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool
from tests.execution.stage_kit import FakeGuardrails, Stand
from tui_agent.execution import ExecutionOptions, HookBus
from tui_agent.execution.outcomes import Outcome, cancelled, failure, not_found, timed_out
from tui_agent.execution.pipeline.finish_call import (
    add_notes_and_truncate,
    apply_result_hooks,
    ask_failure_hooks,
    guard_output,
)
from tui_agent.protocol.events import GuardrailTripped
from tui_agent.protocol.hooks import AfterTool, FailureAnswer
from tui_agent.protocol.tool import Accesses, ToolResult

FINE = Outcome("ok", ToolResult.of_text("fine"))
BROKEN = failure("error", "broken", "ValueError")


def hooked(event: str, function: Any) -> HookBus:
    hooks = HookBus()
    hooks.add(event, function, name="hook")
    return hooks


@pytest.mark.parametrize(
    "outcome", [BROKEN, timed_out("act", 3), not_found("x", (), (), explain=False)], ids=lambda outcome: outcome.status
)
async def test_a_hook_may_replace_the_result_of_a_failed_call(outcome: Outcome) -> None:
    fallback = FailureAnswer(fallback=ToolResult.of_text("instead"))
    stand = Stand(hooks=hooked("on_tool_error", lambda question: fallback))

    answer = await ask_failure_hooks(stand.services, stand.state, outcome)

    assert (answer.status, answer.result.text, answer.halts) == ("overridden", "instead", None)


async def test_a_hook_may_end_the_run_with_the_failure() -> None:
    stand = Stand(hooks=hooked("on_tool_error", lambda question: FailureAnswer(continue_on_error=False)))

    answer = await ask_failure_hooks(stand.services, stand.state, BROKEN)

    assert (answer.status, answer.halts) == ("error", "error")


@pytest.mark.parametrize("outcome", [FINE, cancelled("", started=True), failure("denied_policy", "no")])
async def test_failure_hooks_run_only_for_failures(outcome: Outcome) -> None:
    asked: list[Any] = []
    stand = Stand(hooks=hooked("on_tool_error", asked.append))

    assert await ask_failure_hooks(stand.services, stand.state, outcome) is outcome
    assert asked == []


async def test_a_mutator_changes_the_result_for_all() -> None:
    def redact(question: AfterTool) -> ToolResult:
        return ToolResult.of_text("***", is_error=True)

    stand = Stand(hooks=hooked("after_tool", redact))

    outcome = await apply_result_hooks(stand.services, stand.state, FINE)

    assert (outcome.status, outcome.result.text) == ("error", "***")


async def test_a_failing_mutator_withholds_the_result() -> None:
    stand = Stand(hooks=hooked("after_tool", lambda question: 1 / 0))

    outcome = await apply_result_hooks(stand.services, stand.state, FINE)

    assert (outcome.status, outcome.error_kind) == ("error", "hook_failed")
    assert "fine" not in outcome.result.text
    assert "The call ran (status ok)" in outcome.result.text


async def test_without_mutators_a_result_does_not_change() -> None:
    assert await apply_result_hooks(Stand().services, Stand().state, FINE) is FINE


@pytest.mark.parametrize(("halts", "reason"), [(False, None), (True, "guardrail")])
async def test_a_result_that_trips_a_guardrail_is_withheld(halts: bool, reason: str | None) -> None:
    stand = Stand(guardrails=FakeGuardrails(halts=halts))
    secret = Outcome("ok", ToolResult.of_text("bad secret", details={"raw": "bad secret"}))

    outcome = await guard_output(stand.services, stand.state, secret)

    assert (outcome.status, outcome.halts) == ("withheld", reason)
    assert "secret" not in str(outcome)
    assert stand.events(GuardrailTripped)[0].lane == "tool_output"


async def test_a_result_that_cannot_be_checked_is_withheld() -> None:
    stand = Stand(guardrails=FakeGuardrails())

    outcome = await guard_output(stand.services, stand.state, Outcome("ok", ToolResult.of_text("worst")))

    assert outcome.status == "withheld"


async def test_a_result_that_passes_does_not_change() -> None:
    stand = Stand(guardrails=FakeGuardrails())

    assert await guard_output(stand.services, stand.state, FINE) is FINE
    assert await guard_output(Stand().services, Stand().state, FINE) is FINE


async def test_the_users_message_precedes_the_result() -> None:
    stand = Stand()
    stand.state.approval.notes = ("The user said: careful",)

    outcome = await add_notes_and_truncate(stand.services, stand.state, FINE)

    assert outcome.result.text == "[The user said: careful]\nfine"


async def test_an_archived_result_is_neither_truncated_nor_archived_again(tmp_path: Path) -> None:
    options = ExecutionOptions(result_limit=500, archive_dir=tmp_path)
    long = Outcome("ok", ToolResult.of_text("x" * 1000))
    reading = ScriptedTool(paths=lambda arguments: Accesses(reads=frozenset({tmp_path / "c.txt"})))

    again, first = Stand(reading, options=options), Stand(options=options)
    once_more = await add_notes_and_truncate(again.services, again.state, long)
    archived = await add_notes_and_truncate(first.services, first.state, long)

    assert (once_more.truncated, once_more.persisted_path) == (False, None)
    assert once_more.result.text == "x" * 1000
    assert archived.persisted_path is not None
