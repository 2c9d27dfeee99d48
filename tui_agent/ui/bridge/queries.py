"""Queries of the screen by subject, to a service or the agent if there is one."""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.model_facts import ModelFact
from tui_agent.protocol.facts.source_symbol import SourceSymbol
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import GrantScope
from tui_agent.protocol.prompt_command import PromptCommand

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.configuration.permission_rules import RuleImpact
    from tui_agent.workbench.session_commands import SessionCommands
    from tui_agent.workbench.sessions.prompt_files import PromptFiles
    from tui_agent.workbench.sessions.prompt_store import PromptStore
    from tui_agent.workbench.workspace_files import WorkspaceFiles
    from tui_agent.workbench.workspace_symbols import WorkspaceSymbols

    from .engine_types import AgentLoop, Rewinder, RewindOutcome, RewindPlan, RewindPoint, Scope

NOT_READY = "The session is still being read; try again in a moment."


class GrantQueries:
    """Asks for grant facts; without facts, rules are kept for the session only."""

    def __init__(self, facts: "RuleImpact | None" = None) -> None:
        self._facts = facts

    def file_of(self, scope: GrantScope, /) -> str | None:
        """Return the file that keeps rules of a scope."""
        return self._facts.file_of(scope) if self._facts is not None else None

    def answered(self, rule: str, but_call: str, /) -> tuple[str, ...]:
        """Return the calls that the rule would have allowed."""
        return tuple(self._facts.answered(rule, but_call)) if self._facts is not None else ()

    def refusal(self, rule: str, tool: str, arguments: JsonObject, /) -> str:
        """Return why a typed rule may not be stored."""
        missing = "Rules can only be taken as proposed here."
        return self._facts.refusal(rule, tool, arguments) if self._facts is not None else missing


class RewindQueries:
    """Rewinds."""

    def __init__(self, service: "Rewinder | None" = None) -> None:
        self.service = service
        """None: the session is not stored."""

    async def points(self) -> "tuple[RewindPoint, ...]":
        """Return the points to rewind to."""
        return tuple(await self._live_service.points())

    async def plan(self, point: "RewindPoint", /) -> "RewindPlan":
        """Return the plan of a rewind."""
        return await self._live_service.plan(point)

    async def plan_for_call(self, call_id: str, text: str, /) -> "RewindPlan":
        """Return the plan for undoing one call."""
        return await self._live_service.plan_for_call(call_id, text)

    async def carry_out(self, plan: "RewindPlan", scope: "Scope", overwritten: AbstractSet[Path], /) -> "RewindOutcome":
        """Carry out a plan."""
        return await self._live_service.carry_out(plan, scope, overwritten)

    @property
    def _live_service(self) -> "Rewinder":
        if self.service is None:
            raise TuiAgentError("this session is not stored")
        return self.service


class PromptQueries:
    """Reads and keeps the prompts of the project."""

    def __init__(self, memory: "PromptStore | None", session_id: Callable[[], str]) -> None:
        """
        Args:
            memory: keeps the prompts; None: they are not kept.
            session_id: returns the id of the current session.
        """
        self.memory = memory
        """Keeps the prompts; None: they are not kept."""
        self._session_id = session_id

    async def add(self, text: str) -> None:
        """Add a prompt that was sent in the current session."""
        if self.memory is not None:
            await self.memory.add(text, self._session_id())

    async def find(self, text: str) -> tuple[str, ...]:
        """Return the prompts that contain a text, the newest first."""
        return await self.memory.find(text) if self.memory is not None else ()

    async def all(self) -> tuple[str, ...]:
        """Return all prompts, the oldest first."""
        return await self.memory.all() if self.memory is not None else ()

    async def earlier_draft(self) -> str:
        """Return the draft that was not sent because the program did not end properly; empty if there is none."""
        return await self.memory.earlier_draft() if self.memory is not None else ""


class FileQueries:
    """Finds and reads files of the workspace."""

    def __init__(
        self,
        agent: "AgentLoop | None" = None,
        finder: "WorkspaceFiles | None" = None,
        reader: "PromptFiles | None" = None,
        symbols: "WorkspaceSymbols | None" = None,
    ) -> None:
        """
        Args:
            agent: knows the workspace; None: it does not exist yet.
            finder: finds files by a part of their path; None: none are completed.
            reader: reads files that the user names; None: none are shown.
            symbols: finds functions and classes; None: none are completed.
        """
        self._agent = agent
        self._finder = finder
        self._reader = reader
        self._symbols = symbols

    def is_in_workspace(self, name: str) -> bool:
        """Return True if a file or directory of the workspace has this relative path."""
        workspace = self._agent.config.workspace if self._agent is not None else None
        return workspace is not None and Path(workspace, name).exists()

    async def head(self, path: str) -> str:
        """Return the first lines of a text file of the workspace; empty if none may be shown."""
        return await self._reader.head(path) if self._reader is not None else ""

    async def head_from(self, path: str, line: int) -> str:
        """Return lines of a text file of the workspace, from a line on; empty if none may be shown."""
        return await self._reader.head(path, line) if self._reader is not None else ""

    async def find(self, text: str) -> tuple[str, ...]:
        """Return the paths of the workspace's files that match a part of a path, the best first."""
        return await self._finder.find(text) if self._finder is not None else ()

    async def find_symbols(self, text: str) -> tuple[SourceSymbol, ...]:
        """Return the functions and classes of the workspace that match a part of a name, the best first."""
        return await self._symbols.find(text) if self._symbols is not None else ()


class SessionQueries:
    """Runs commands that need the whole program. Raises `TuiAgentError` if that is not possible."""

    def __init__(self, commands: "SessionCommands | None" = None, *, refusal: str) -> None:
        """Create it; `refusal` is the error without `commands`."""
        self._commands = commands
        self._refusal = refusal
        models = commands.models() if commands is not None else ()
        self.model_choices: tuple[PromptCommand, ...] = tuple(
            PromptCommand(f"model {model.name}", "", f"{model.provider} · {model.window:,} tokens · {model.price}")
            for model in sorted(models, key=lambda model: not model.is_current)
        )
        """The models as completions of `/model`."""

    async def export(self, file: str) -> str:
        """Write the session to a new file, and return the file's path."""
        return await self._live_commands.export(file)

    async def fork(self, at_seq: int | None) -> str:
        """Copy the session up to an event, or all of it, and return the id of the copy."""
        return await self._live_commands.fork(at_seq)

    async def doctor(self) -> str:
        """Return the checks of the installation, a line each."""
        return await self._live_commands.doctor()

    async def work_tree(self) -> tuple[str, bool] | None:
        """Return the branch and True if files are changed; None if that is not known."""
        return await self._live_commands.work_tree()

    def models(self) -> tuple[ModelFact, ...]:
        """Return the models that the user can choose, grouped by endpoint."""
        return self._commands.models() if self._commands is not None else ()

    async def choose_model(self, name: str) -> str:
        """Use another model from the next request on, and return its name."""
        self._live_commands.choose_model(name)
        return name

    async def choose_effort(self, name: str) -> str:
        """Change how much the model thinks from the next request on, and return what applies then.

        An empty name changes nothing.
        """
        return self._live_commands.choose_effort(name)

    async def keep_default(self, setting: Literal["model", "effort"]) -> str:
        """Store the model or the effort in force in the user's settings, for new sessions, and return their file."""
        return await self._live_commands.keep_default(setting)

    @property
    def _live_commands(self) -> "SessionCommands":
        if self._commands is None:
            raise TuiAgentError(self._refusal)
        return self._commands


class SubAgentQueries:
    """Lists and steers the running sub-agents, at any depth,."""

    def __init__(self, agent: "AgentLoop | None" = None) -> None:
        self._agent = agent

    def steer(self, name: str, text: str) -> bool:
        """Steer the sub-agent of that name. False if no such sub-agent is running."""
        return self._agent is not None and self._agent.steer_child(name, text) is not None

    def names(self) -> tuple[str, ...]:
        """Return the names by which the running sub-agents can be steered."""
        return tuple(name for name, _ in _named(self._agent)) if self._agent is not None else ()

    def calls(self) -> dict[str, str]:
        """Return the id of the call that started each running sub-agent, by its name."""
        agents = _named(self._agent) if self._agent is not None else ()
        return {name: agent.origin.parent_call_id or "" for name, agent in agents}


def _named(agent: "AgentLoop") -> "Iterator[tuple[str, AgentLoop]]":
    """Yield each sub-agent with a short name, for the oldest of each kind, or with its id, for the others."""
    names = set[str]()
    waiting = [agent]
    while waiting:
        children = waiting.pop(0).children
        for agent_id, child in children.items():
            short = agent_id.rpartition("-")[0]
            name = short if short and short not in names else agent_id
            names.add(name)
            yield name, child
        waiting += children.values()
