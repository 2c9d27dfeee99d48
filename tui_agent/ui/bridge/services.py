"""Services behind the bridge that are not part of the agent: rewind, grants, prompts, files, leftover commands."""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import ImageBlock, JsonObject
from tui_agent.protocol.permissions import GrantScope

from .exchange import Exchange, Query, Work

if TYPE_CHECKING:
    from .engine_types import RewindOutcome, RewindPlan, RewindPoint, Scope

HIDDEN_PROMPT = "[prompt of another session]"
"""Replaces the prompts of other sessions in a recording."""


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


class FileFinder(Protocol):
    """Finds files of the workspace."""

    async def find(self, text: str, /) -> tuple[str, ...]:
        """Return the paths that match a part of a path, the best first."""
        ...


@dataclass(frozen=True, slots=True)
class PromptImage:
    """An image that the user attaches to a message."""

    block: ImageBlock
    name: str
    """Name of its file."""
    width: int
    height: int


class PromptFiles(Protocol):
    """Reads files that the user names in a prompt."""

    async def image(self, path: str, /, *, typed: bool) -> PromptImage | None:
        """Return an image; None if no such file exists. Raises `TuiAgentError` if it cannot be attached."""
        ...

    async def head(self, path: str, /) -> str:
        """Return the first lines of a text file; empty if it has none that may be shown."""
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

    def texts_of(self, session_id: str, /) -> AbstractSet[str]:
        """Return the prompts of one session."""
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


class GrantQueries:
    """Asks for grant facts through an exchange; without facts, rules are kept for the session only."""

    def __init__(self, exchange: Exchange, facts: GrantFacts | None = None) -> None:
        self.exchange = exchange
        self._facts = facts

    @Query("file_of", None, about=("scope",), lasting=True)
    def file_of(self, scope: GrantScope, /) -> str | None:
        """Return the file that keeps rules of a scope."""
        return self._facts.file_of(scope) if self._facts is not None else None

    @Query("answered", (), about=("but_call", "rule"), lasting=True)
    def answered(self, rule: str, but_call: str, /) -> tuple[str, ...]:
        """Return the calls that the rule would have allowed."""
        return tuple(self._facts.answered(rule, but_call)) if self._facts is not None else ()

    @Query("rule_refusal", "", about=("tool", "rule"), lasting=True)
    def refusal(self, rule: str, tool: str, arguments: JsonObject, /) -> str:
        """Return why a typed rule may not be stored."""
        missing = "Rules can only be taken as proposed here."
        return self._facts.refusal(rule, tool, arguments) if self._facts is not None else missing


_NO_PLAN: JsonObject = {"to_seq": 0, "text": "", "steps": ()}


class RewindQueries:
    """Rewinds through an exchange; implements `RewindService`."""

    def __init__(self, exchange: Exchange, service: RewindService | None = None) -> None:
        self.exchange = exchange
        self.service = service
        """None: the session is not stored, or this is a replay."""

    @Query("points", ())
    async def points(self) -> "tuple[RewindPoint, ...]":
        """Return the points to rewind to."""
        return tuple(await self._live_service.points())

    @Query("plan", _NO_PLAN)
    async def plan(self, point: "RewindPoint", /) -> "RewindPlan":
        """Return the plan of a rewind."""
        return await self._live_service.plan(point)

    @Query("plan", _NO_PLAN)
    async def plan_for_call(self, call_id: str, text: str, /) -> "RewindPlan":
        """Return the plan for undoing one call."""
        return await self._live_service.plan_for_call(call_id, text)

    @Query("carry_out", {})
    async def carry_out(self, plan: "RewindPlan", scope: "Scope", overwritten: AbstractSet[Path], /) -> "RewindOutcome":
        """Carry out a plan."""
        return await self._live_service.carry_out(plan, scope, overwritten)

    @property
    def _live_service(self) -> RewindService:
        if self.service is None:
            raise TuiAgentError("this session is not stored")
        return self.service


class PromptQueries:
    """Reads and keeps prompts through an exchange; a recording has the prompts of its own session only."""

    def __init__(self, exchange: Exchange, memory: PromptMemory | None, session_id: Callable[[], str]) -> None:
        """
        Args:
            exchange: records the answers, or returns recorded ones.
            memory: keeps the prompts; None: they are not kept, or this is a replay.
            session_id: returns the id of the current session.
        """
        self.exchange = exchange
        self.memory = memory
        """Keeps the prompts; None: they are not kept."""
        self._session_id = session_id

    async def add(self, text: str) -> None:
        """Add a prompt that was sent in the current session."""
        if self.memory is not None:
            await self.memory.add(text, self._session_id())

    async def find(self, text: str) -> tuple[str, ...]:
        """Return the prompts that contain a text, the newest first."""
        found = await self.memory.find(text) if self.memory is not None else ()
        recorded = self._note_found(text, self._without_others(found))
        return found if self.exchange.is_live else recorded

    async def all(self) -> tuple[str, ...]:
        """Return all prompts, the oldest first."""
        prompts = await self.memory.all() if self.memory is not None else ()
        recorded = self._note_all(self._without_others(prompts))
        return prompts if self.exchange.is_live else recorded

    async def earlier_draft(self) -> str:
        """Return the draft that was not sent because the program did not end properly; empty if there is none."""
        draft = await self.memory.earlier_draft() if self.memory is not None else ""
        recorded = self._note_draft(HIDDEN_PROMPT if draft else "")
        return draft if self.exchange.is_live else recorded

    def _without_others(self, prompts: tuple[str, ...]) -> tuple[str, ...]:
        own = self.memory.texts_of(self._session_id()) if self.memory is not None else frozenset[str]()
        return tuple(prompt if prompt in own else HIDDEN_PROMPT for prompt in prompts)

    @Query("find_prompts", (), about=("text",), lasting=True)
    def _note_found(self, text: str, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return prompts

    @Query("all_prompts", (), lasting=True)
    def _note_all(self, prompts: tuple[str, ...]) -> tuple[str, ...]:
        return prompts

    @Query("earlier_draft", "")
    def _note_draft(self, draft: str) -> str:
        return draft
