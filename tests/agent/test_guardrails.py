"""Guardrails: run in order, the first tripwire wins, a guardrail that raises does not pass (S4-67 … S4-70)."""

from typing import Any

from tui_agent.agent.guardrails import GuardrailContext, GuardrailDecision, first_trip

CONTEXT = GuardrailContext("input", (), "system", None, 3)
PASS = GuardrailDecision(passed=True, tripwire=True)


async def test_a_check_may_be_a_plain_function() -> None:
    class Plain:
        name, kind = "plain", "output"

        def check(self, context: GuardrailContext) -> GuardrailDecision:
            return PASS

    plain: Any = Plain()

    assert await first_trip([plain], GuardrailContext("output", (), "", None, 0), [].append) is None


async def test_an_invalid_answer_lets_nothing_pass() -> None:
    class Odd:
        name, kind = "odd", "input"

        async def check(self, context: GuardrailContext) -> bool:
            return True

    odd: Any = Odd()

    assert await first_trip([odd], CONTEXT, [].append) == "guardrail odd answered a bool"
