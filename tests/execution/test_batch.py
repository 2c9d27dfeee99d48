import pytest

from tests.execution.kit import ScriptedTool, calls, run
from tui_agent.execution.batch import _union_length  # pyright: ignore[reportPrivateUsage]
from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.strategy import Parallel


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
def test_time_in_which_several_questions_wait_counts_once(spans: list[tuple[float, float]], length: float) -> None:
    assert _union_length(spans) == length


async def test_ends_told_late_come_with_their_messages_in_call_order() -> None:
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
