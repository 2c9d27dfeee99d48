"""The messages from the bridge to the screen: events of the engine, now and past, and the agent's status."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from textual.message import Message

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.prompt_command import PromptCommand


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The agent's state as far as the screen reads it but no event reports it. Not part of the journal."""

    pending: bool = False
    """True until the agent is there: a session that is resumed is still being read."""
    running: bool = False
    """True while a run, a command or a compaction runs or is about to."""
    mode: PermissionMode = PermissionMode.ASK
    unsent: tuple[str, ...] = ()
    """Prompts and commands that have not started, in order."""
    restored_messages: tuple[str, ...] = ()
    """Ids of the queued messages that the agent restored with the session."""
    commands: tuple[PromptCommand, ...] = ()
    """The `/` commands of the user's and the project's files, skills included."""


@dataclass
class StatusPublished(Message):
    """The agent's status changed; `AgentBridge.status` is the new one."""


@dataclass
class AgentEvents(Message):
    """A batch of events; the only message that carries engine data."""

    events: Sequence[Envelope]
    applied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the screen once it shows the events. Until then, the bridge collects and merges the next ones."""


@dataclass
class HistoryEvents(AgentEvents):
    """Events of a resumed session, in order; the screen shows them together with the first `AgentEvents`."""
