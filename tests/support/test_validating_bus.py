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


async def test_a_whole_run_passes_and_one_that_keeps_an_end_to_itself_does_not() -> None:
    events = await told()

    judged(*events)
    with pytest.raises(AssertionError, match="never ended"):
        judged(*events[:-1])
    ValidatingBus.made.clear()


async def test_an_event_that_is_changed_after_it_was_told_is_named() -> None:
    bus = ValidatingBus(whole=False)
    bus.publish(ToolQueued(call_id="c", name="act", args_raw={"n": 1}, index=0))
    bus.publish(event := Noticed(code="x", text="y"))
    event.context["later"] = True

    with pytest.raises(AssertionError, match="notice was changed"):
        bus.judge()


def test_tests_of_the_engine_make_no_other_bus() -> None:
    """Whoever made a plain one would tell events that nobody judges (P01)."""
    rooms = [path for room in ("execution", "behaviour", "agent") for path in (TESTS / room).rglob("*.py")]
    plain = [path.name for path in rooms if re.search(r"\bEventBus\(\)", path.read_text("utf-8"))]

    assert len(rooms) > 60
    assert plain == []
