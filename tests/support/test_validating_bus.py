import re
from pathlib import Path

import pytest

from tests.execution.kit import ScriptedTool, calls, run
from tests.support.validating_bus import ValidatingBus
from tui_agent.protocol.events import AgentEvent, Noticed, ToolQueued

TESTS = Path(__file__).parents[1]


async def told() -> list[AgentEvent]:
    return (await run([ScriptedTool()], calls("act"))).events


def judged(*events: AgentEvent) -> None:
    bus = ValidatingBus()
    for event in events:
        bus.publish(event)
    bus.judge()


async def test_a_whole_run_passes_and_a_run_without_an_end_fails() -> None:
    events = await told()

    judged(*events)
    with pytest.raises(AssertionError, match="never ended"):
        judged(*events[:-1])
    ValidatingBus.made.clear()


async def test_an_event_that_changes_after_publication_is_named() -> None:
    bus = ValidatingBus(whole=False)
    bus.publish(ToolQueued(call_id="c", name="act", args_raw={"n": 1}, index=0))
    bus.publish(event := Noticed(code="x", text="y"))
    event.context["later"] = True

    with pytest.raises(AssertionError, match="notice changed after its publication"):
        bus.judge()


def test_tests_of_the_engine_make_no_other_bus() -> None:
    """A plain bus would publish events that no test validates."""
    rooms = [path for room in ("execution", "behaviour", "agent") for path in (TESTS / room).rglob("*.py")]
    plain = [path.name for path in rooms if re.search(r"\bEventBus\(\)", path.read_text("utf-8"))]

    assert len(rooms) > 60
    assert plain == []
