"""The todo tool: a validated list, emitted as data."""

import pytest

from tests.support.table import table
from tests.tools.calls import Recorded, call
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.tools.plan_tools import TodoTool

ITEMS = [
    {"text": "look", "status": "done"},
    {"text": " change ", "status": "in_progress"},
    {"text": "test", "status": "pending"},
]

tool = TodoTool()


async def test_emits_the_whole_list() -> None:
    recorded = Recorded()

    result = await call(tool, recorded, items=ITEMS)

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
        await call(tool, recorded, items=items)

    assert recorded.data == []
