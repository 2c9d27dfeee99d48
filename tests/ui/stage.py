"""The app with the real agent loop, a scripted model, tools that a test releases, and a pilot."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from textual.events import Paste
from textual.pilot import Pilot

from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentTool, RetryPolicy
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import GrantScope, PermissionDecision, PermissionMode, Verdict
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult, ToolSpec
from tui_agent.providers import ScriptedProvider
from tui_agent.providers.scripted_provider import Step, call, reply
from tui_agent.ui.app.tui_agent_app import TuiAgentApp
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge
from tui_agent.ui.chat.chat_options import ChatOptions
from tui_agent.ui.chat.chat_screen import ChatScreen

PATIENCE = 60.0
"""Seconds until a wait fails."""


class FakePolicy:
    """A policy that allows reads; the mode decides everything else."""

    def __init__(self, mode: PermissionMode = PermissionMode.ASK) -> None:
        self.mode = mode
        self.granted: list[str] = []

    def set_mode(self, mode: PermissionMode) -> None:
        self.mode = mode

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        return None

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        if tool.is_read_only(arguments):
            return PermissionDecision(decision="allow", source="read_only", reason="it only reads")
        if tool.name in self.granted:
            return PermissionDecision(decision="allow", source="grant", reason="granted for this session")
        verdicts: dict[PermissionMode, Verdict] = {PermissionMode.ALLOW: "allow", PermissionMode.PLAN: "deny"}
        return PermissionDecision(
            decision=verdicts.get(self.mode, "ask"),
            source="mode",
            reason=f"no rule decides, and the mode is {self.mode}",
        )

    def grant_rule(self, tool: Tool, arguments: JsonObject) -> str | None:
        return tool.name

    def grant_choices(self, tool: Tool, arguments: JsonObject) -> tuple[str, ...]:
        rule = self.grant_rule(tool, arguments)
        return () if rule is None else (rule,)

    def grant(self, rule: str, scope: GrantScope) -> None:
        self.granted.append(rule)


class StageTool(Tool):
    """A tool that outputs `text` and then waits until the test releases it."""

    def __init__(self, name: str, *, read_only: bool = True, waits: bool = False, text: str = "done") -> None:
        self.spec = ToolSpec(
            name=name,
            description=f"{name} something",
            input_schema={"type": "object", "properties": {"what": {"type": "string"}}},
        )
        self._read_only = read_only
        self._text = text
        self.gate = asyncio.Event()
        if not waits:
            self.gate.set()
        self.ran: list[str] = []

    def is_read_only(self, arguments: JsonObject) -> bool:
        return self._read_only

    def summarise(self, arguments: JsonObject) -> str:
        return str(arguments.get("what", ""))

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.ran.append(self.summarise(arguments))
        context.output(f"{self._text}\n")
        await self.gate.wait()
        return ToolResult.of_text(self._text)


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stage:
    """The app and everything behind it."""

    app: TuiAgentApp
    pilot: Pilot[None]
    loop: AgentLoop
    provider: ScriptedProvider
    policy: FakePolicy
    bus: EventBus
    clock: Clock = field(default_factory=Clock)

    @property
    def chat(self) -> ChatScreen:
        return self.app.chat

    @property
    def draft(self) -> str:
        return self.chat.entry.composer.text

    async def until(self, happened: Callable[[], object]) -> None:
        """Let the app work until a condition holds."""
        async with asyncio.timeout(PATIENCE):
            while not happened():
                await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type a text, key by key."""
        await self.pilot.press(*("space" if letter == " " else letter for letter in text))

    async def say(self, text: str) -> None:
        """Paste a text into the composer and send it."""
        self.app.post_message(Paste(text))
        await self.until(lambda: self.draft.endswith(text))
        await self.pilot.press("enter")

    async def settled(self) -> None:
        """Wait until no run is active and every event is shown."""
        view = self.chat.state.status
        await self.until(lambda: not self.loop.running and view.status == "idle" and view.ended)
        await self.pilot.pause()

    def told(self) -> list[str]:
        """Return the user messages in the agent's history, in order."""
        return [message.text for message in self.loop.history.messages() if message.role == "user"]


@asynccontextmanager
async def stage(
    steps: Iterable[Step] = (),
    tools: Sequence[Tool] = (),
    *,
    mode: PermissionMode = PermissionMode.ASK,
    size: tuple[int, int] = (120, 40),
    prompt: str | None = None,
) -> AsyncIterator[Stage]:
    """Run the app headless until the block is left."""
    bus, clock = EventBus(), Clock()
    provider, policy = ScriptedProvider(steps), FakePolicy(mode)
    loop = AgentLoop(
        AgentLoopConfig(
            provider=provider,
            tools=tools,
            bus=bus,
            policy=policy,
            gate=ApprovalGate(interactive=True),
            retry=RetryPolicy(),
        )
    )
    app = TuiAgentApp(
        AgentBridge(loop, bus),
        ChatOptions(
            WorkingDirectory("~/shop", "main"),
            surroundings=TerminalEnvironment(reduced_motion=True, clock=clock),
            prompt=prompt,
        ),
    )
    async with app.run_test(size=size) as pilot:
        yield Stage(app, pilot, loop, provider, policy, bus, clock)


@asynccontextmanager
async def sub_agent_at_work(task: str = "Find it") -> AsyncIterator[tuple[Stage, StageTool, str]]:
    """Run the app with a sub-agent whose call `look` the test releases, and yield the stage, the tool and its id."""
    look = StageTool("look", waits=True)
    steps = [reply(call("agent", task=task)), reply(call("look", what="a")), "Found.", "Done."]
    async with stage(steps, [look]) as on:
        on.loop.add_tool(AgentTool(on.loop))
        on.policy.mode = PermissionMode.ALLOW
        await on.say("go")
        await on.until(lambda: look.ran)
        (agent_id,) = on.loop.children
        yield on, look, agent_id
