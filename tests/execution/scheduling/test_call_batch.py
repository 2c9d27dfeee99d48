import pytest

from tests.execution.kit import ScriptedTool, calls, run
from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.scheduling.call_batch import _union_length  # pyright: ignore[reportPrivateUsage]
from tui_agent.execution.strategy import Auto, Batched, Parallel, Sequential, Strategy
from tui_agent.protocol.events import ToolBatchStarted


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0.0),
        ([(1.0, 2.0)], 1.0),
        ([(1.0, 3.0), (2.0, 4.0)], 3.0),
        ([(1.0, 5.0), (2.0, 3.0)], 4.0),
        ([(3.0, 4.0), (1.0, 2.0)], 2.0),
    ],
)
def test_overlapping_questions_count_once(spans: list[tuple[float, float]], length: float) -> None:
    assert _union_length(spans) == length


@pytest.mark.parametrize(
    ("strategy", "groups"),
    [
        (Auto(), ()),
        (Parallel(), (("c0", "c1", "c2"),)),
        (Batched(2), (("c0", "c1"), ("c2",))),
        (Sequential(), (("c0",), ("c1",), ("c2",))),
    ],
)
async def test_the_start_of_a_batch_names_its_waves(strategy: Strategy, groups: tuple[tuple[str, ...], ...]) -> None:
    ran = await run([ScriptedTool()], calls("act", "act", "act"), ExecutionOptions(strategy=strategy))

    (began,) = ran.of(ToolBatchStarted)
    assert began.groups == groups
    assert began.call_ids == ("c0", "c1", "c2")


async def test_delayed_ends_are_published_with_their_messages_in_call_order() -> None:
    options = ExecutionOptions(strategy=Parallel(), end_events="source_order")

    ran = await run([ScriptedTool()], calls("act", "act"), options)

    assert ran.types[-7:] == [
        "tool.ended c0",
        "message.started c0",
        "message.ended c0",
        "tool.ended c1",
        "message.started c1",
        "message.ended c1",
        "tool.batch_ended",
    ]
