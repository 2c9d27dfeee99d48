"""Services behind the bridge that are not part of the agent: rewind, grants, prompts, files, leftover commands."""

from collections.abc import Coroutine, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from tui_agent.protocol.messages import DocumentBlock, ImageBlock, JsonObject
from tui_agent.protocol.model_facts import ModelFact
from tui_agent.protocol.permissions import GrantScope

if TYPE_CHECKING:
    from .engine_types import RewindOutcome, RewindPlan, RewindPoint, Scope

T = TypeVar("T")
Work: TypeAlias = Coroutine[Any, Any, T]
"""The result of calling a coroutine function."""


class GrantFacts(Protocol):
    """Facts about rules that an approval would store."""

    def file_of(self, scope: GrantScope, /) -> str | None:
        """Return the file that keeps rules of a scope; None if rules cannot be kept there."""
        ...

    def answered(self, rule: str, but_call: str, /) -> Sequence[str]:
        """Return the calls of this session, except one, that the rule would have allowed without a question."""
        ...

    def refusal(self, rule: str, tool: str, arguments: JsonObject, /) -> str:
        """Return why a typed rule may not be stored for a call, in words; empty if it may."""
        ...


class RewindService(Protocol):
    """Plans and carries out rewinds. Its coroutines raise `TuiAgentError` if they fail."""

    def points(self) -> "Work[Sequence[RewindPoint]]":
        """Return the points to rewind to, the newest first."""
        ...

    def plan(self, point: "RewindPoint", /) -> "Work[RewindPlan]":
        """Return the plan of a rewind to a point."""
        ...

    def plan_for_call(self, call_id: str, text: str, /) -> "Work[RewindPlan]":
        """Return the plan for undoing the changes of one call."""
        ...

    def carry_out(self, plan: "RewindPlan", scope: "Scope", overwritten: AbstractSet[Path], /) -> "Work[RewindOutcome]":
        """Carry out a plan."""
        ...


class LeftoverCommands(Protocol):
    """Commands that still run because tui-agent was killed. Its answers are events."""

    async def report(self) -> None:
        """Publish which commands still run."""
        ...

    async def end(self, pid: int | None) -> None:
        """End the command that has a process with this id; None: all of them."""
        ...


@dataclass(frozen=True, slots=True)
class SourceSymbol:
    """A function or class in a file of the workspace."""

    name: str
    kind: str
    """The word that declares it, such as `def` or `class`."""
    path: str
    first: int
    """Number of its first line."""
    last: int


class SymbolFinder(Protocol):
    """Finds functions and classes of the workspace."""

    async def find(self, text: str, /) -> tuple[SourceSymbol, ...]:
        """Return the symbols that match a part of a name, the best first."""
        ...


class FileFinder(Protocol):
    """Finds files and directories of the workspace."""

    async def find(self, text: str, /) -> tuple[str, ...]:
        """Return the paths that match a part of a path, the best first; that of a directory ends in a slash."""
        ...


Attachment: TypeAlias = ImageBlock | DocumentBlock


@dataclass(frozen=True, slots=True)
class PromptAttachment:
    """A file, or a part of it, that the user attaches to a message."""

    block: Attachment
    name: str
    """Name of its file."""
    size: str = ""
    """Extent of an image or a PDF: `640×480`, `12 pages` or `1,234 bytes`."""


class PromptFiles(Protocol):
    """Reads files that the user names in a prompt."""

    async def attachment(self, path: str, /, *, typed: bool) -> PromptAttachment | None:
        """Return an image, a PDF, lines of a file or the listing of a directory.

        None if no such file exists. Raises `TuiAgentError` if it cannot be attached.
        """
        ...

    async def head(self, path: str, line: int = 1, /) -> str:
        """Return some lines of a text file, from a line on; empty if it has none that may be shown."""
        ...


class SessionCommands(Protocol):
    """Commands that need the whole program. They raise `TuiAgentError` with the reason if they fail."""

    async def export(self, file: str, /) -> str:
        """Write the session to a new file, and return the file's path; an empty name stands for the default."""
        ...

    async def fork(self, at_seq: int | None, /) -> str:
        """Copy the session up to an event, or all of it, and return the id of the copy."""
        ...

    async def doctor(self) -> str:
        """Return the checks of the installation, a line each."""
        ...

    async def work_tree(self) -> tuple[str, bool] | None:
        """Return the branch and True if files are changed; None if that is not known."""
        ...

    def models(self) -> tuple[ModelFact, ...]:
        """Return the models that the user can choose, grouped by endpoint."""
        ...

    def choose_model(self, name: str, /) -> None:
        """Use another model from the next request on."""
        ...

    def choose_effort(self, name: str, /) -> str:
        """Change how much the model thinks from the next request on, and return a sentence that says so.

        An empty name changes nothing and returns the present state.
        """
        ...

    async def keep_default(self, setting: Literal["model", "effort"], /) -> str:
        """Store the model or the effort in force in the user's settings, for new sessions, and return their file."""
        ...


class PromptMemory(Protocol):
    """The prompts of the project, and the unsent draft of a program that did not end properly."""

    async def find(self, text: str, /) -> tuple[str, ...]:
        """Return the prompts that contain a text, the newest first."""
        ...

    async def all(self) -> tuple[str, ...]:
        """Return all prompts, the oldest first."""
        ...

    async def add(self, text: str, session_id: str, /) -> None:
        """Add a prompt that was sent in a session."""
        ...

    async def earlier_draft(self) -> str:
        """Return the draft that was not sent; empty if there is none."""
        ...

    async def save_draft(self, text: str, /) -> None:
        """Keep the draft in case the program does not end properly."""
        ...

    def forget_draft(self) -> None:
        """Remove the draft, because the program ends properly."""
        ...
