"""Sessions on disk, for tests of the list of sessions."""

from collections.abc import Mapping
from pathlib import Path

from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    FileChanged,
    MessageEnded,
    RunEnded,
    RunStarted,
    SessionCreated,
    UsageUpdated,
)
from tui_agent.protocol.messages import AssistantMessage, TextBlock, Usage, user_message
from tui_agent.protocol.permissions import PermissionMode

NOW = 1_760_000_000_000
"""Milliseconds since the epoch at which the lists are drawn."""
MINUTE = 60_000


def save(
    root: Path,
    session_id: str,
    cwd: Path,
    prompt: str,
    answer: str = "Done.",
    *,
    minutes: int = 5,
    branch: str = "main",
    cost: float = 0.04,
    files: Mapping[str, tuple[int, int]] | None = None,
) -> Path:
    """Write the journal of a session with one run that began some minutes ago."""
    root.mkdir(parents=True, exist_ok=True)
    path = root / f"{session_id}.jsonl"
    asked = user_message(prompt)
    said = AssistantMessage(content=(TextBlock(text=answer),), model="model")
    events: list[AgentEvent] = [
        SessionCreated(id=session_id, path=str(path), cwd=str(cwd), version="1", branch=branch),
        RunStarted(input=prompt, trigger="prompt", model="model", mode=PermissionMode.ASK),
        MessageEnded(message_id=asked.id, message=asked),
        *(
            FileChanged(path=name, change="modified", added=added, removed=removed)
            for name, (added, removed) in (files or {}).items()
        ),
        MessageEnded(message_id=said.id, message=said),
        UsageUpdated(delta=Usage(), total=Usage(), cost=cost),
        RunEnded(reason="done", final_text=answer),
    ]
    time = NOW - minutes * MINUTE
    lines = [
        Envelope(event, seq, time, float(seq), Origin(session_id=session_id)).to_json()
        for seq, event in enumerate(events, start=1)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path
