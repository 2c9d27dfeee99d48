"""Real agents with scripted models and a recorder."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from tests.agent.fakes import FakePolicy
from tests.support.transcript_checks import validate_history
from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.function_tool import function_tool
from tui_agent.protocol.messages import JsonObject, Message
from tui_agent.protocol.permissions import PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Tool, ToolContext
from tui_agent.providers import ScriptedProvider
from tui_agent.session import JournalWriter, StoredSession


class TrialPolicy(FakePolicy):
    """Lets every command run in a trial; asks about all changes."""

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        return PermissionDecision(decision="allow", source="mode", reason="in a trial", place="trial")


async def _at_once() -> None:
    """Waits for nothing."""


def tools_for(effects: Path, before_effects: Callable[[], Awaitable[None]] = _at_once) -> list[Tool]:
    """Tools: one that only reads, one with an effect, one that fails, and one that never ends."""

    @function_tool(read_only=True)
    async def look(what: str) -> str:
        """Looks at something."""
        return f"{what} is there\u2028still the same line"

    @function_tool()
    async def leave(trace: str, context: ToolContext) -> str:
        """Leaves a trace."""
        context.output("leaving\n")
        context.progress("half", 0.5)
        await before_effects()
        with effects.open("a") as file:
            file.write(f"{trace}\n")
        return f"left {trace}"

    @function_tool()
    async def fail(reason: str) -> str:
        """Fails."""
        raise ValueError(reason)

    @function_tool()
    async def hang() -> str:
        """Never ends."""
        await asyncio.Event().wait()
        raise AssertionError

    return [look, leave, fail, hang]


def agent_for(
    session: StoredSession, bus: EventBus, provider: ScriptedProvider, effects: Path, **changes: Any
) -> AgentLoop:
    """Return an agent that resumes a session."""
    return AgentLoop(
        AgentLoopConfig(
            provider=provider,
            tools=tools_for(effects, changes.pop("before_effects", _at_once)),
            bus=bus,
            policy=changes.pop("policy", FakePolicy(PermissionMode.ALLOW)),
            gate=changes.pop("gate", ApprovalGate()),
            history=changes.pop("history", session.messages),
            waiting=session.waiting,
            session_id=session.id,
            retry=RetryPolicy(first_wait=0.0, longest_wait=0.0),
            before_effects=changes.pop("flush_or_warn", None),
            **changes,
        )
    )


def recorded(session: StoredSession, bus: EventBus) -> JournalWriter:
    """Return the recorder of a session."""
    assert session.path is not None
    return JournalWriter(bus, session.path, expected_size=session.size)


def bus_for(session: StoredSession) -> EventBus:
    """Return a bus that continues a session's numbers."""
    return EventBus(session.origin(), first_seq=session.next_seq)


def said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return role and text of each message of a valid conversation."""
    validate_history(messages)
    return [(message.role, message.text) for message in messages]
