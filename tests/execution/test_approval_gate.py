import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution.approval_gate import ApprovalAnswer, ApprovalGate
from tui_agent.protocol.events import ApprovalResolved
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest

APPROVE = ApprovalDecision(decision="approve")
DENY = ApprovalDecision(decision="deny")


def question(call_id: str = "c", digest: str = "d") -> ApprovalRequest:
    return ApprovalRequest(request_id=f"q_{call_id}", call_id=call_id, digest=digest, tool="act", args={})


class Asking:
    """Question to a gate in a task, and the events it published."""

    def __init__(self, gate: ApprovalGate) -> None:
        self.gate = gate
        self.bus = ValidatingBus(whole=False)
        self._subscription = self.bus.subscribe(merge=False)
        self._events: list[Any] = []

    async def ask(self, request: ApprovalRequest | None = None, **kwargs: Any) -> ApprovalAnswer:
        return await self.gate.ask(request or question(), self.bus, **kwargs)

    def events(self, kind: type[Any] = object) -> list[Any]:
        self._events += [envelope.event for envelope in self._subscription.drain()]
        return [event for event in self._events if isinstance(event, kind)]

    async def answered_by(
        self, act: Callable[[], Awaitable[None] | None], request: ApprovalRequest | None = None, **kwargs: Any
    ) -> ApprovalAnswer:
        """Return the answer if `act` happens while the question is pending."""
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self.ask(request, **kwargs))
            await until_pending(self.gate)
            done = act()
            if done is not None:
                await done
        return task.result()


async def until_pending(gate: ApprovalGate) -> None:
    while not gate.pending:
        await asyncio.sleep(0)


async def test_the_user_answers_by_id_and_only_the_first_answer_counts() -> None:
    gate = ApprovalGate(interactive=True)
    asking = Asking(gate)

    def answer_twice() -> None:
        assert not gate.resolve("q_other", DENY)
        assert gate.resolve("q_c", APPROVE)
        assert not gate.resolve("q_c", DENY)

    answer = await asking.answered_by(answer_twice)

    assert answer == ApprovalAnswer(APPROVE, "user")
    assert not gate.resolve("q_c", DENY)
    assert len(asking.events(ApprovalResolved)) == 1


@pytest.mark.parametrize("approver", [lambda request: 1 / 0, lambda request: "yes"])
async def test_a_failing_approver_denies(approver: Any) -> None:
    answer = await Asking(ApprovalGate(approver=approver)).ask()

    assert (answer.decision.decision, answer.by) == ("deny", "nobody")
    assert "because the only one failed (" in answer.decision.note


async def test_a_front_end_may_be_faster_than_the_approver() -> None:
    async def never(request: ApprovalRequest) -> ApprovalDecision:
        await asyncio.Event().wait()
        return DENY

    gate = ApprovalGate(interactive=True, approver=never)

    answer = await Asking(gate).answered_by(lambda: gate.resolve("q_c", APPROVE) and None)

    assert answer == ApprovalAnswer(APPROVE, "user")


async def test_a_front_end_can_still_answer_after_the_approver_failed() -> None:
    failing: Any = lambda request: 1 / 0  # noqa: E731
    gate = ApprovalGate(interactive=True, approver=failing)

    async def later() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        gate.resolve("q_c", APPROVE)

    assert await Asking(gate).answered_by(later) == ApprovalAnswer(APPROVE, "user")


def test_a_question_may_have_a_timeout() -> None:
    async def work() -> ApprovalAnswer:
        return await Asking(ApprovalGate(interactive=True, timeout=60)).ask()

    answer = run_virtual(work())

    assert (answer.decision.decision, answer.by) == ("deny", "timeout")
    assert "60 s" in answer.decision.note


@pytest.mark.parametrize(
    ("decision", "rule"),
    [
        (ApprovalDecision(decision="approve", scope="session"), "act"),
        (ApprovalDecision(decision="approve", scope="project", rule="act(*)"), "act(*)"),
        (ApprovalDecision(decision="approve", scope="session", rule="*"), None),
        (ApprovalDecision(decision="approve", scope="session", input={"a": 2}), None),
        (APPROVE, None),
    ],
)
async def test_an_answer_for_more_than_one_call_is_published_with_its_rule(
    decision: ApprovalDecision, rule: str | None
) -> None:
    asking = Asking(ApprovalGate(approver=lambda _: decision))

    await asking.ask(question().model_copy(update={"session_rule": "act", "rules": ("act", "act(*)")}))

    assert [event.rule for event in asking.events(ApprovalResolved)] == [rule]
