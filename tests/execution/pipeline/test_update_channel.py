from typing import Any

from tests.support.validating_bus import ValidatingBus
from tui_agent.execution.hook_bus import HookBus
from tui_agent.execution.pipeline.update_channel import UpdateChannel
from tui_agent.protocol.events import FileChanged, TodoUpdated, Warned
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.tool import DataUpdate, OutputUpdate

CALL = ToolCall(id="c", name="act")


class Kept:
    """Channel and the events it published."""

    def __init__(self, hooks: HookBus | None = None) -> None:
        bus = ValidatingBus(whole=False)
        self._subscription = bus.subscribe(merge=False)
        self.channel = UpdateChannel(CALL, hooks or HookBus(), bus)

    def events(self) -> list[Any]:
        return [envelope.event for envelope in self._subscription.drain()]


async def test_output_is_counted_by_stream_if_the_tool_does_not_count_it() -> None:
    kept = Kept()

    for chunk, stream in (("one", "stdout"), ("é\ud800", "stderr"), ("two", "stdout")):
        kept.channel.report(OutputUpdate(chunk=chunk, stream=stream))
    kept.channel.report(OutputUpdate(chunk="the end", bytes_total=1_000))
    kept.channel.report(OutputUpdate(chunk="."))

    assert [(event.stream, event.bytes_total) for event in kept.events()] == [
        ("stdout", 3),
        ("stderr", 3),
        ("stdout", 6),
        ("stdout", 1_000),
        ("stdout", 1_001),
    ]


async def test_data_named_like_a_domain_event_is_published_as_that_event() -> None:
    kept = Kept()

    kept.channel.report(DataUpdate(kind="todo.updated", data={"items": [{"text": "a", "status": "done"}]}))
    kept.channel.report(DataUpdate(kind="file.changed", data={"path": "/a", "change": "created"}))

    todo, changed = kept.events()
    assert isinstance(todo, TodoUpdated)
    assert todo.items[0].text == "a"
    assert changed == FileChanged(path="/a", change="created", call_id="c")


async def test_unreadable_domain_data_produces_a_warning() -> None:
    kept = Kept()

    kept.channel.report(DataUpdate(kind="todo.updated", data={"items": "none"}))

    warning = kept.events()[0]
    assert isinstance(warning, Warned)
    assert warning.context == {"call_id": "c", "kind": "todo.updated"}
