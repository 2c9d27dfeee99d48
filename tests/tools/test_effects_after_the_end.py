"""Changes of a command are found while the model is asked already, and reach row, model and undo without loss."""

import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import HookBus
from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import FileChanged, RunEnded, ToolData, ToolEnded
from tui_agent.protocol.messages import UserMessage, joined_text
from tui_agent.protocol.provider import ModelRequest, StreamEvent
from tui_agent.protocol.tool import EFFECTS_DATA
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Step, call, reply
from tui_agent.rewind.planner import unobserved_commands
from tui_agent.tools import BackgroundJobs
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.tree_watch import Changes, TreeSnapshot, TreeWatch
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.workbench.built_in_tools import built_in_tools

PATIENCE = 30.0
E = TypeVar("E")


class Model(ScriptedProvider):
    """Model that reports when it was asked the second time."""

    def __init__(self, steps: Sequence[Step], again: threading.Event) -> None:
        super().__init__(steps)
        self._again = again

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        if self.requests:
            self._again.set()
        async for event in super().stream(request):
            yield event


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event before which no look at the files after a command ends."""
    again = threading.Event()
    compare = TreeWatch.changes_since

    def changes_since(watch: TreeWatch, before: TreeSnapshot) -> Changes:
        assert again.wait(PATIENCE), "the request waits for a look at the files"
        return compare(watch, before)

    monkeypatch.setattr(TreeWatch, "changes_since", changes_since)
    return again


async def run(root: Path, model: Model) -> list[Envelope]:
    """Return the events of a run."""
    bus = ValidatingBus()
    listener = bus.subscribe(merge=False)
    async with BackgroundJobs(bus.publish) as jobs:
        tools = built_in_tools(
            root,
            root.parent / "spool",
            contents=ContentStore(root.parent / "contents"),
            protected=ProtectedTree(root),
            jobs=jobs,
        )
        hooks = HookBus()
        hooks.add("after_tool", lambda _: None, needs_effects=False)
        loop = AgentLoop(
            AgentLoopConfig(
                provider=model,
                tools=tools,
                bus=bus,
                hooks=hooks,
                before_effects=jobs.settled,
                effects_published=jobs.settled,
            )
        )
        jobs.notify = lambda agent, text: loop.notify(text)
        await loop.run("go")
    return listener.drain()


async def test_no_request_waits_for_a_look_and_the_next_effect_does(tmp_path: Path, again: threading.Event) -> None:
    (tmp_path / "work").mkdir()
    root = (tmp_path / "work").resolve()
    write = call("write", path="b", content="2")
    model = Model([reply("", call("bash", command="echo 1 > a")), reply("", write), "Done."], again)
    envelopes = await run(root, model)

    changes = [(Path(event.path).name, event.call_id) for event in _of(envelopes, FileChanged)]
    ended = [event.call_id for event in _of(envelopes, ToolEnded)]
    assert changes == [("a", ended[0]), ("b", ended[1])]
    assert [event.data for event in _of(envelopes, ToolData) if event.kind == EFFECTS_DATA] == [{"files_changed": 1}]
    assert isinstance(envelopes[-1].event, RunEnded) or envelopes[-1].type == "status.changed"
    assert unobserved_commands(envelopes, 0) == 0
    assert unobserved_commands([one for one in envelopes if one.type != "tool.data"], 0) == 1


async def test_protected_files_reach_the_row_and_the_model_at_the_next_boundary(
    tmp_path: Path, again: threading.Event
) -> None:
    root = (tmp_path / "work").resolve()
    (root / ".git" / "hooks").mkdir(parents=True)
    again.set()
    bash = call("bash", command="echo evil > .git/hooks/pre-commit")
    model = Model([reply("", bash), "Done.", "I see."], again)
    envelopes = await run(root, model)

    notices = [one for one in model.requests[-1].messages if isinstance(one, UserMessage) and one.kind == "notice"]
    assert [joined_text(one.content) for one in notices] == [
        "The command `echo evil > .git/hooks/pre-commit` changed protected files: .git/hooks/pre-commit created. A "
        "warning shows this to the user, who can undo it."
    ]
    (ended,) = _of(envelopes, ToolEnded)
    row = CallViewState(ended.call_id)
    for envelope in envelopes:
        if getattr(envelope.event, "call_id", None) == ended.call_id:
            row.apply(envelope)
    assert str((row.outcome.details or {})["outcome"]).startswith("changed protected files: .git/hooks/pre-commit")
    assert [Path(file.path).name for file in row.changes.files] == ["pre-commit"]


def _of(envelopes: list[Envelope], kind: type[E]) -> list[E]:
    return [envelope.event for envelope in envelopes if isinstance(envelope.event, kind)]
