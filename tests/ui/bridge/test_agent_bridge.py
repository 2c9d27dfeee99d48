"""The bridge passes text to the agent and events to the screen, and loses none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.message import Message

from tests.support.table import table
from tests.ui.open_bench import bench_of
from tests.ui.still import FakeAgent
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError, ProviderError, TuiAgentError
from tui_agent.protocol.events import MessageDelta, Noticed
from tui_agent.protocol.facts.page_facts import DefinitionFact
from tui_agent.protocol.messages import FrozenModel, JsonObject, unbuilt_models
from tui_agent.protocol.permissions import ApprovalRequest, PermissionMode
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.providers import ScriptedProvider
from tui_agent.ui.bridge.agent_bridge import AgentBridge, AgentEvents


def told(bus: EventBus) -> list[str]:
    """Texts of the events published so far."""
    with bus.subscribe(since=0) as subscription:
        return [getattr(envelope.event, "text", envelope.type) for envelope in subscription.drain()]


@asynccontextmanager
async def serving(bridge: AgentBridge) -> AsyncIterator[None]:
    """Serves prompts in the background."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bridge.serve())
        yield
        task.cancel()


async def turns(number: int = 20) -> None:
    """Let the other tasks run."""
    for _ in range(number):
        await asyncio.sleep(0)


async def test_calls_that_waited_when_the_program_ended_come_before_the_first_prompt() -> None:
    agent = FakeAgent()
    agent.pending_calls = [ApprovalRequest(call_id="c1", digest="d", tool="write", args={})]
    bridge = AgentBridge(agent, EventBus())
    bridge.submit("one")

    async with serving(bridge):
        await turns()
        assert agent.asked == [("run", None), ("run", "one")]

        agent.refusal = AlreadyRunningError()
        bridge.submit("words")
        await turns()
        assert [message.text for message in agent.waiting_messages] == ["words"], "it steers a run that it meets"

    bridge.requeue("follow_up", "later")
    assert [message.kind for message in agent.waiting_messages] == ["steer", "follow_up"]
    assert not bridge.status.running, "a message of a resumed session is queued without a run"


@table(
    ("refusal", "words"),
    [(ConfigurationError("there is nothing to say"), ["there is nothing to say"]), (asyncio.CancelledError(), [])],
)
async def test_a_run_that_fails_is_reported_and_the_next_one_served(refusal: BaseException, words: list[str]) -> None:
    agent, bus = FakeAgent(), EventBus()
    agent.refusal = refusal
    bridge = AgentBridge(agent, bus)
    bridge.submit("one")

    async with serving(bridge):
        await turns()
        agent.refusal = None
        bridge.submit("two")
        await turns()

    assert told(bus) == words
    assert agent.asked == [("run", "one"), ("run", "two")]


async def test_a_refused_mode_a_provider_that_is_not_ready_and_a_crash_are_reported() -> None:
    class Unready(ScriptedProvider):
        async def prepare(self) -> None:
            raise ProviderError("there is no key", kind="authentication")

    agent, bus = FakeAgent(), EventBus()
    bridge = AgentBridge(agent, bus)
    agent.refusal = ConfigurationError("this agent has no policy")
    bridge.set_mode(PermissionMode.PLAN)
    agent.provider = Unready()
    await bridge.warm_up()
    bridge.report_crash(RuntimeError("boom"))

    crash = "internal error: RuntimeError: boom. The conversation was kept; send your message again."
    assert told(bus) == ["this agent has no policy", "there is no key", crash]


async def test_a_warm_bridge_leaves_no_validator_to_the_first_prompt() -> None:
    class Late(FrozenModel):
        text: str

    assert Late in unbuilt_models()

    await AgentBridge(FakeAgent(), EventBus()).warm_up()

    assert list(unbuilt_models()) == []
    assert Late(text="a").text == "a"


async def test_while_a_batch_is_not_shown_the_next_ones_are_merged() -> None:
    bus = EventBus()
    batches: list[AgentEvents] = []

    def take(message: Message) -> None:
        if isinstance(message, AgentEvents):
            batches.append(message)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(AgentBridge(FakeAgent(), bus).relay(take))
        bus.publish(Noticed(code="c", text="first"))
        await turns()
        for letter in "abc":
            bus.publish(MessageDelta(message_id="m", kind="text", delta=letter))
        bus.publish(Noticed(code="c", text="second"))
        await turns()
        assert len(batches) == 1

        batches[0].applied.set()
        await turns()
        task.cancel()

    assert [envelope.type for envelope in batches[1].events] == ["message.delta", "notice"]
    first = batches[1].events[0].event
    assert isinstance(first, MessageDelta)
    assert first.delta == "abc"


async def test_commands_to_a_pending_agent_are_deferred_or_refused() -> None:
    bridge, agent, bus = AgentBridge(mode=PermissionMode.ASK), FakeAgent(), EventBus()

    assert bridge.status.pending
    assert bridge.run_shell("ls", "!ls", shared=True)
    bridge.rename("a  title")
    bridge.set_mode(PermissionMode.ACCEPT_EDITS)
    assert bridge.status.mode is PermissionMode.ACCEPT_EDITS
    with pytest.raises(TuiAgentError, match="still being read"):
        _ = bridge.open_bench
    assert bridge.messages.drop(agent.steer("waits").id) is None
    bridge.send_now()
    bridge.leave()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bridge.serve())
        await turns()
        with bus.subscribe() as heard:
            bridge.open(bench_of(agent, bus))
            await turns()
            assert [envelope.type for envelope in heard.drain()] == ["session.renamed"]
        task.cancel()

    assert not bridge.status.pending
    assert agent.asked == [
        ("mode", PermissionMode.ACCEPT_EDITS, "user"),
        ("command", "bash", {"command": "ls", "sandbox": False}, "!ls", True, True),
        ("run", None),  # The message to send now,
        ("run", None),  # and the message sent while the command ran.
    ]


# --- commands of the user ---------------------------------------------------------------------------------------------


@table("cancelled", [False, True])
async def test_messages_queued_during_a_command_are_sent_unless_it_was_cancelled(cancelled: bool) -> None:
    class Busy(FakeAgent):
        async def run_command(
            self, tool: str, arguments: JsonObject, said: str, *, shared: bool, typed: bool = False
        ) -> object:
            self.running = True
            bridge.submit("and then this")
            if cancelled:
                bridge.cancel()
            self.running = False
            return None

    agent = Busy()
    bridge = AgentBridge(agent, EventBus())
    bridge.run_shell("ls", "!ls", shared=True)

    async with serving(bridge):
        await turns()

    assert (("run", None) in agent.asked) is not cancelled
    assert [message.text for message in agent.waiting_messages] == ["and then this"]


class FakeDefinitions:
    """The command files `/say` and, with a shell command, `/look`."""

    commands = (PromptCommand("say"), PromptCommand("look"))

    def __init__(self) -> None:
        self.runs: list[str] = []

    def facts(self) -> tuple[DefinitionFact, ...]:
        return ()

    def knows(self, text: str, /) -> bool:
        return text.startswith(("/say", "/look"))

    def needs_own_run(self, text: str, /) -> bool:
        return text.startswith("/look")

    def asks_what_to_review(self, text: str, /) -> bool:
        return False

    def expanded(self, text: str, /) -> str:
        return text.replace("/say", "Say")

    async def run(self, text: str, message: object, /) -> None:
        self.runs.append(text)


async def test_command_files_run_also_if_they_were_typed_before_the_agent_was_there() -> None:
    agent, files, bridge = FakeAgent(), FakeDefinitions(), AgentBridge()
    for text in ("/look early", "/say next", "/unknown"):
        bridge.submit(text)
    bridge.follow_up("then that")
    assert bridge.status.unsent == ("/look early", "/say next", "/unknown", "then that")

    async with serving(bridge):
        bridge.open(bench_of(agent, EventBus(), definitions=files))
        assert [one.slash for one in bridge.status.commands] == ["say", "look"]
        bridge.submit("/say now")
        await turns(40)

    assert files.runs == ["/look early", "/say now"]
    # Behind the first prompt, each is what it would be while that one ran.
    waiting = [("steer", "Say next"), ("steer", "/unknown"), ("follow_up", "then that")]
    assert [(message.kind, message.text) for message in agent.waiting_messages] == waiting
    agent.running = True
    assert (bridge.must_wait("/look"), bridge.must_wait("/say hello")) == (True, False)


def test_only_paths_inside_the_workspace_are_its_files(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    for path in (workspace / "notes.txt", tmp_path / "outside.txt"):
        path.write_text("text\n")
    agent, bridge = FakeAgent(), AgentBridge()
    assert not bridge.has_file("notes.txt"), "no agent is loaded"
    vars(agent)["config"] = SimpleNamespace(workspace=str(workspace))
    bridge.open(bench_of(agent, EventBus()))

    names = ("notes.txt", "./notes.txt", "x/../notes.txt", ".", "missing", "..", "../outside.txt", str(tmp_path))
    assert [name for name in names if bridge.has_file(name)] == ["notes.txt", "./notes.txt", "x/../notes.txt", "."]
