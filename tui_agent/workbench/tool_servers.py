"""The tool servers of a launch: the list of them, how each is started, and the answers to their questions.

Servers come from settings, the project's file and the command line; questions pass the agent's approval gate.
"""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.mcp.server_config import key_variable, parse_server_file
from tui_agent.mcp.server_parts import (
    NO_QUESTIONS,
    QuestionAnswer,
    SampledMessage,
    SamplingAnswer,
    SamplingRequest,
    ServerParts,
    ServerQuestions,
)
from tui_agent.mcp.server_pool import ConfiguredServer, ServerPool
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.errors import ConfigurationError, ProviderError, ToolError
from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextBlock,
    UserMessage,
)
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.provider import ModelRequest, SystemPart
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.settings import PROJECT_FILE, LoadedSettings, Locations
from tui_agent.tools.media.media_blocks import check_media
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.command_launcher import HelperTree

from .configuration.launch_options import LaunchOptions
from .configuration.named_endpoints import withhold_named_secrets
from .configuration.project_trust import SERVERS_FILE, FolderTrust

if TYPE_CHECKING:
    from tui_agent.agent import AgentLoop

TOKENS = "mcp-tokens"
"""Directory of the tokens of servers, below that of the state."""


def configured_servers(
    options: LaunchOptions, folder: FolderTrust, loaded: LoadedSettings
) -> tuple[tuple[ConfiguredServer, ...], tuple[str, ...]]:
    """Return the servers of a launch, and messages about those that are not used. Blocks.

    From now on, no child process inherits the variables with their tokens.

    Of several servers of one name, that of `--mcp-config` counts, then that of the settings.

    Raises:
        ConfigurationError: the file of `--mcp-config` cannot be used.
    """
    found: dict[str, ConfiguredServer] = {}
    notes: list[str] = []
    if options.mcp_config is not None:
        servers, problems = _given_servers(options.mcp_config)
        found = {name: ConfiguredServer(name, server, str(options.mcp_config)) for name, server in servers.items()}
        notes += [f"{options.mcp_config}: {problem}" for problem in problems]
    if options.demo:
        # The offline model needs no servers; only those that the command line names start.
        withhold_named_secrets(loaded.settings, (one.server for one in found.values()))
        return tuple(found.values()), tuple(notes)
    project_file = os.path.realpath(options.cwd / PROJECT_FILE)
    for name, server in loaded.settings.mcp.items():
        origin = next((origin for key, origin in loaded.origins.items() if key.startswith(f"mcp.{name}.")), "settings")
        if project_file in origin and (refused := _key_refusal(name, server)):
            notes.append(f"{origin}: {refused}")
        elif server.sampling and project_file in loaded.origins.get(f"mcp.{name}.sampling", project_file):
            notes.append(f"{origin}: {name}: only your own settings may let a server ask the model (sampling)")
            found.setdefault(name, ConfiguredServer(name, server.model_copy(update={"sampling": False}), origin))
        else:
            found.setdefault(name, ConfiguredServer(name, server, origin))
    notes += [folder.servers_refusal] if folder.servers_refusal else []
    if folder.servers is not None:
        file = options.cwd / SERVERS_FILE
        try:
            servers, problems = parse_server_file(folder.servers)
        except ConfigurationError as error:
            servers, problems = {}, (str(error),)
        problems += tuple(
            f"{name}: not used, because you have a server of this name" for name in servers if name in found
        )
        refusals = {name: refused for name, server in servers.items() if (refused := _key_refusal(name, server))}
        notes += [f"{file}: {problem}" for problem in (*problems, *refusals.values())]
        for name, server in servers.items():
            if name not in refusals:
                found.setdefault(name, ConfiguredServer(name, server, str(file)))
    withhold_named_secrets(loaded.settings, (one.server for one in found.values()))
    return tuple(found.values()), tuple(notes)


def _key_refusal(name: str, server: ToolServer) -> str:
    """Return why a project's server is not used: it would receive our own key; empty if it would not."""
    variable = key_variable(server)
    return f"{name}: not used, because a project's server never gets {variable}" if variable is not None else ""


def _given_servers(path: Path) -> tuple[dict[str, ToolServer], tuple[str, ...]]:
    try:
        return parse_server_file(read_regular_file(str(path)))
    except OSError as error:
        raise ConfigurationError(f"--mcp-config {path}: {error.strerror or error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"--mcp-config {path}: {error}") from error


def server_parts(
    cwd: Path, bus: EventBus, locations: Locations, questions: ServerQuestions = NO_QUESTIONS
) -> ServerParts:
    """Return the parts that the servers of a launch share; the environment is that of now."""
    return ServerParts(
        environment=child_environment(os.environ),
        secrets=dict(os.environ),
        root=cwd.resolve(),
        publish=bus.publish,
        questions=questions,
        new_tree=partial(HelperTree, cwd.resolve()),
        tokens=locations.state_dir / TOKENS,
        check_media=check_media,
    )


@asynccontextmanager
async def open_servers(
    servers: tuple[ConfiguredServer, ...],
    parts: ServerParts,
    policy: PermissionPolicy,
    window: Callable[[], int],
) -> AsyncGenerator[ServerPool | None]:
    """Start the servers in the background, and stop them when the context closes; None if there are none.

    Args:
        window: returns the tokens of the model's context window.
    """
    if not servers:
        yield None
        return

    def withdraw(tool: str) -> None:
        """Make a tool that changed ask again."""
        policy.remove_session_rule("allow", tool)

    async with ServerPool(servers, parts, window=window, tool_changed=withdraw).running() as pool:
        yield pool


class ServerAnswers:
    """Puts the questions of servers to the user of one agent."""

    def __init__(self, loop: "AgentLoop") -> None:
        self._loop = loop

    @property
    def functions(self) -> ServerQuestions:
        """The functions for the servers."""
        return ServerQuestions(ask=self.ask, sample=self.sample, extend_call=self._loop.extend_call)

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Ask the user, and return the answer; one whose values do not fit the form counts as cancelled."""
        decision = await self._loop.ask(_request(question))
        if decision.decision != "approve":
            return QuestionAnswer("decline" if decision.decision == "deny" else "cancel")
        if not question.fields:
            return QuestionAnswer("accept")
        try:
            return QuestionAnswer("accept", question.content(decision.input or {}))
        except ValueError:
            # A front end that does not know forms approved it without values.
            return QuestionAnswer("cancel")

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        """Ask the user, then the model.

        Raises:
            ToolError: the user refused, or the model did not answer.
        """
        model = self._loop.provider.model
        limit = min(request.max_tokens, model.max_output_tokens)
        question = ServerQuestion(server=request.server, kind="sampling", message=f"to {model.name}")
        decision = await self._loop.ask(_request(question, _sampling_args(request, model.name, limit)))
        if decision.decision != "approve":
            raise ToolError("The user rejected the sampling request.")
        try:
            answer = await self._loop.answer_beside(
                ModelRequest(
                    messages=tuple(_message(one, model.name) for one in request.messages),
                    system=(SystemPart(request.system),) if request.system else (),
                    max_tokens=limit,
                    temperature=request.temperature,
                    cache=False,
                    conversation_id=f"{self._loop.history.id}/{request.server}",
                )
            )
        except ProviderError as error:
            raise ToolError(f"The model did not answer: {error}") from error
        return SamplingAnswer(answer.text, answer.model, answer.stop_reason)


def _request(question: ServerQuestion, args: JsonObject | None = None) -> ApprovalRequest:
    """Return the request for approval that carries a question."""
    return ApprovalRequest(
        call_id="",
        digest="",
        tool=f"mcp__{question.server}",
        args=args or {},
        summary=question.message,
        reason=f"the MCP server {question.server} asks",
        options=("approve", "deny") if question.kind == "sampling" else ("approve", "deny", "skip"),
        question=question,
    )


def _sampling_args(request: SamplingRequest, model: str, limit: int) -> JsonObject:
    """Return everything that the model would get, for the dialog."""
    args: JsonObject = {"model": model, "max_tokens": limit}
    if request.system:
        args["system"] = request.system
    for number, message in enumerate(request.messages, 1):
        parts = [block.text if isinstance(block, TextBlock) else f"[{block.type}]" for block in message.blocks]
        args[f"{number}. {message.role}"] = "\n".join(parts)
    return args


def _message(one: SampledMessage, model: str) -> Message:
    if one.role == "user":
        return UserMessage(content=one.blocks)
    return AssistantMessage(content=tuple(block for block in one.blocks if isinstance(block, TextBlock)), model=model)
