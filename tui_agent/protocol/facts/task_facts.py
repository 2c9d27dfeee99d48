"""The sessions of the user, of this program and of others, as the list of tasks shows them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui_agent.protocol.messages import JsonObject

TaskState: TypeAlias = Literal["waiting", "running", "idle", "closed"]
"""`waiting`: a question waits for the user; `idle`: open, without a run; `closed`: no program has it open."""


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """A question of another session."""

    request: str
    """Id of the question."""
    title: str
    text: str
    """The question in words."""
    details: JsonObject
    """Input of the call, and the changes that it made in a trial; empty if they are too long."""
    answers: tuple[str, ...]
    """Answers that count: `allow`, `deny`."""
    token: str
    """Token for one answer."""


@dataclass(frozen=True, slots=True)
class TaskFact:
    """One session."""

    id: str
    title: str
    folder: str
    branch: str
    state: TaskState
    since: int
    """Time of the state in milliseconds since the epoch."""
    pid: int = 0
    """Process that has it open; 0 if that is not known."""
    socket: str = ""
    """Path of the socket that takes answers; empty without one."""
    questions: tuple[TaskQuestion, ...] = ()
    """Questions that wait, oldest first."""
