"""The app with the events of a session but no agent, for snapshots."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from textual.pilot import Pilot

from tests.ui.open_bench import bench_of
from tests.ui.story import Story
from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.messages import JsonObject, UserKind, UserMessage, user_message
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.protocol.provider import ModelProvider
from tui_agent.providers import ScriptedProvider
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.state.queued_messages import WaitingMessages


class FakePolicyOf:
    """A policy that only has a mode."""

    def __init__(self, mode: PermissionMode) -> None:
        self.mode = mode


class FakeAgent:
    """An agent that records calls and publishes nothing."""

    def __init__(self, *, running: bool = False, mode: PermissionMode = PermissionMode.ASK) -> None:
        self.running = running
        self.queue = SteeringQueue(lambda _: None)
        self.pending_calls: list[ApprovalRequest] = []
        self.provider: ModelProvider = ScriptedProvider()
        self.policy = FakePolicyOf(mode)
        self.asked: list[object] = []
        self.children: dict[str, FakeAgent] = {}
        self.refusal: BaseException | None = None

    async def run(self, user_input: str | None, /) -> object:
        self.asked.append(("run", user_input))
        if self.refusal is not None:
            raise self.refusal
        return None

    async def run_command(
        self, tool: str, arguments: JsonObject, said: str, *, shared: bool, typed: bool = False
    ) -> object:
        self.asked.append(("command", tool, arguments, said, shared, typed))
        return None

    def steer(self, text: str, /) -> UserMessage:
        return self._wait("steer", text)

    def follow_up(self, text: str, /) -> UserMessage:
        return self._wait("follow_up", text)

    def steer_child(self, name: str, text: str, /) -> UserMessage | None:
        self.asked.append(("steer_child", name, text))
        return None

    def cancel_call(self, call_id: str, reason: str, /) -> bool:
        self.asked.append(("cancel_call", call_id, reason))
        return False

    @property
    def waiting_messages(self) -> list[UserMessage]:
        return list(self.queue.waiting)

    @property
    def message_queues(self) -> tuple[SteeringQueue, ...]:
        return (self.queue,)

    def extend_call(self, call_id: str, seconds: float, /) -> float | None:
        self.asked.append(("extend_call", call_id, seconds))
        return None

    def stop(self) -> None:
        self.asked.append("stop")

    def abort(self, reason: str, /) -> None:
        self.asked.append(("abort", reason))

    def set_mode(self, mode: PermissionMode, by: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.asked.append(("mode", mode, by))
        self.policy.mode = mode

    def resolve_approval(self, request_id: str, decision: ApprovalDecision, /) -> bool:
        self.asked.append(("decide", request_id, decision.decision))
        return request_id == "known"

    def _wait(self, kind: UserKind, text: str) -> UserMessage:
        return self.queue.put(user_message(text, kind))


def bridge_to(agent: Any, bus: EventBus | None = None, past: Sequence[Envelope] = (), **services: Any) -> AgentBridge:
    """Return a bridge that is open to an agent, with the past and services of its session."""
    bridge = AgentBridge()
    bridge.open(bench_of(agent, bus, past, **services))
    return bridge


def notes(app: TuiAgentApp) -> list[str]:
    """Return the short messages on the screen: above the composer, and over a page."""
    return [*(text for text, _ in app.chat.entry.notices._messages), *(note.message for note in app._notifications)]


def still_app(
    story: Story,
    *,
    running: bool = False,
    theme: str = "dark",
    label: str = "",
    ideas: Sequence[str] = (),
    no_color: bool = False,
    reduced_motion: bool = True,
    remembers: bool = True,
    **services: Any,
) -> TuiAgentApp:
    """Return the app showing a story, its clock stopped; `remembers`: its agent knows the queued messages."""
    ended_at, waiting = story.now, WaitingMessages()
    for envelope in story.envelopes:
        waiting.apply(envelope)
    agent = FakeAgent(running=running, mode=story.mode)
    for message in waiting.all if remembers else ():
        known = user_message(message.text, message.kind)
        agent.queue.put(known.model_copy(update={"id": message.message_id}))
    return TuiAgentApp(
        bridge_to(agent, past=story.envelopes, **services),
        ChatOptions(
            WorkingDirectory("~/shop", "main"),
            label=label,
            ideas=ideas,
            surroundings=TerminalEnvironment(no_color=no_color, reduced_motion=reduced_motion, clock=lambda: ended_at),
        ),
        theme=theme,
    )


def pressing(*keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Wait until the story is on the screen, then press keys."""

    async def before(pilot: Pilot[None]) -> None:
        await shown(pilot)
        for key in keys:
            await pilot.press(key)
            await drawn(pilot)

    return before


async def shown(pilot: Pilot[None]) -> None:
    """Wait until every event is drawn, an approval dialog included."""
    app = pilot.app
    assert isinstance(app, TuiAgentApp)
    while not app.chat.state.status.model or (app.chat.approvals.line.display and app.screen is app.chat):
        await pilot.pause()
    await drawn(pilot)


async def drawn(pilot: Pilot[None]) -> None:
    """Wait until nothing is left to draw."""
    app = pilot.app
    assert isinstance(app, TuiAgentApp)
    conversation = app.chat.body.conversation
    for _ in range(3):
        await pilot.pause()
        if app.screen is not app.chat and conversation.transcript.width:
            # Estimated heights of rows that the dialog covered from the beginning would show in the scrollbar.
            conversation.transcript.settle(0, conversation.transcript.total)
            conversation.lay_out_visible()
            conversation.show_scrollbar()
        conversation.flush()
    await pilot.pause()
