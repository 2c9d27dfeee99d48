"""Another model answers the rest of a run whose model stays overloaded."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.protocol.errors import ConfigurationError, ProviderError, ProviderErrorKind
from tui_agent.protocol.events import Warned
from tui_agent.protocol.provider import ModelProvider
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.providers import AnthropicProvider

OVERLOADED: dict[str, Any] = {"status": 529, "error_type": "overloaded_error", "error_message": "Overloaded"}
TEXT: dict[str, Any] = {"blocks": [{"type": "text", "text": "Hello."}]}
CALL: dict[str, Any] = {"blocks": [{"type": "tool_use", "name": "look", "input": {}}]}


def look() -> str:
    """Look."""
    return "seen"


class Outcome:
    """The models that were asked, the reports, and the warnings."""

    def __init__(
        self, server: ScriptedMessagesServer, reports: Sequence[AgentRunReport], warned: list[str], after: str
    ) -> None:
        self.asked = [request.body["model"] for request in server.requests]
        self.reasons = [report.reason for report in reports]
        self.warned = warned
        self.model_after = after


async def outcome(script: Sequence[dict[str, Any]], *prompts: str, fallback: str = "second", **retry: Any) -> Outcome:
    bus = ValidatingBus(whole=False)
    told = bus.subscribe(merge=False)
    async with ScriptedMessagesServer(script) as server, AsyncExitStack() as stack:

        def make(name: str) -> ModelProvider:
            if name == "unknown":
                raise ConfigurationError("no provider 'unknown'")
            provider = AnthropicProvider(name, auth_token=server.token, base_url=server.base_url)
            stack.push_async_callback(provider.aclose)
            return provider

        config = AgentLoopConfig(
            provider=make("first"),
            bus=bus,
            tools=[look],
            retry=RetryPolicy(first_wait=0, **retry),
            fallback_provider=(lambda: make(fallback)) if fallback else None,
        )
        loop = AgentLoop(config)
        reports = [await loop.run(prompt) for prompt in prompts]
        events = [envelope.event for envelope in told.drain()]
        warned = [one.text for one in events if isinstance(one, Warned) and one.code == "model_fallback"]
        return Outcome(server, reports, warned, loop.provider.model.name)


async def test_the_fallback_answers_until_the_run_ends_and_then_the_chosen_model_is_asked_again() -> None:
    seen = await outcome([*[OVERLOADED] * 3, CALL, TEXT, TEXT], "Go on", "And now?")

    assert seen.asked == ["first", "first", "first", "second", "second", "first"]
    assert seen.reasons == ["done", "done"]
    assert seen.warned == [
        "first is overloaded: second answers until this run ends, and the next message asks first again."
    ]
    assert seen.model_after == "first"


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        ({"status": 503, "raw_body": "no"}, 3),
        ({**OVERLOADED, "headers": {"retry-after": "999"}}, 1),
        ({"blocks": [], "ending": "error", "error_type": "overloaded_error"}, 3),
    ],
)
async def test_every_form_of_an_overload_counts(answer: dict[str, Any], attempts: int) -> None:
    seen = await outcome([*[answer] * attempts, TEXT], "Go on")

    assert seen.asked == [*["first"] * attempts, "second"]
    assert seen.reasons == ["done"]


async def test_other_failures_do_not_change_the_model() -> None:
    failing: dict[str, Any] = {"status": 500, "error_message": "broken"}

    seen = await outcome([failing] * 4, "Go on", max_attempts=4)

    assert (seen.asked, seen.reasons, seen.warned) == (["first"] * 4, ["error"], [])


@pytest.mark.parametrize(("fallback", "warnings"), [("first", 0), ("", 0), ("unknown", 1)])
async def test_without_another_model_all_retries_ask_the_same_model(fallback: str, warnings: int) -> None:
    seen = await outcome([OVERLOADED] * 4, "Go on", fallback=fallback, max_attempts=4)

    assert (seen.asked, seen.reasons) == (["first"] * 4, ["error"])
    assert len(seen.warned) == warnings


def _failure(kind: ProviderErrorKind = "overloaded", retry_after: float | None = None) -> ProviderError:
    return ProviderError("no", kind=kind, retry_after=retry_after)


@table("kind", get_args(ProviderErrorKind))
def test_what_was_refused_as_such_is_never_sent_again(kind: ProviderErrorKind) -> None:
    wait = RetryPolicy().wait_before(2, _failure(kind))

    assert (wait is not None) is (kind in {"rate_limit", "overloaded", "server", "network", "timeout", "stream_cut"})


@given(st.integers(2, 10), st.floats(0, 120))
def test_the_server_is_never_asked_earlier_than_it_said(attempt: int, retry_after: float) -> None:
    wait = RetryPolicy().wait_before(attempt, _failure(retry_after=retry_after))

    assert wait is not None
    assert wait >= retry_after
