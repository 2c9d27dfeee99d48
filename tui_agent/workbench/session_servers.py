"""The subject `servers`: lists, adds, restarts and signs in to a session's tool servers, and expands their prompts."""

import asyncio
import re
import shlex
import sys
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

from tui_agent.agent import AgentLoop
from tui_agent.agent.loop_config import UpdateTools
from tui_agent.execution import ToolRegistry
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import Warned
from tui_agent.protocol.facts.page_facts import ServerFact
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.prompt_references import PromptCommand
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.settings import Locations

from .configuration.project_trust import SERVERS_FILE, FolderTrust
from .launch import Launch
from .user_commands import open_page

if TYPE_CHECKING:
    from tui_agent.mcp.server_pool import ConfiguredServer, ServerPool
    from tui_agent.mcp.server_session import OfferedPrompt
    from tui_agent.mcp.server_task import ServerTask

_PROMPT = re.compile(r"/([A-Za-z0-9_-]+):(\S+)(?:\s+(.*))?\Z", re.DOTALL)
_MENU_NAME = re.compile(r"[\w.:-]+", re.ASCII)
"""Names of prompts that the menu offers; the user can type others in full."""
_RESOURCE = re.compile(r"(?:\A|(?<=\s))@([A-Za-z0-9_-]+):(\S+)")
_NOT_ADDED = "[an image or a PDF, which is not added to the message; a tool of the server may return it]"
_NAMED = re.compile(r"(?:\A/|(?:\A|(?<=\s))@)([A-Za-z0-9_-]+):\S")


class SessionServers:
    """Lists and restarts the servers, and fetches the prompts and resources that the user names."""

    def __init__(self, pool: "ServerPool | None", is_defined: Callable[[str], bool] = lambda _: False) -> None:
        """
        Args:
            pool: the servers; None: none is configured.
            is_defined: True for a text that runs a command file or loads a skill: these come before prompts.
        """
        self._pools: list[ServerPool] = [] if pool is None else [pool]
        self._is_defined = is_defined

    @property
    def tasks(self) -> "Mapping[str, ServerTask]":
        """The servers that run, by name."""
        return ChainMap(*(dict(pool.tasks) for pool in self._pools))

    async def add(
        self,
        servers: Mapping[str, ToolServer],
        loop: AgentLoop,
        policy: PermissionPolicy,
        tasks: asyncio.TaskGroup,
        over: asyncio.Event,
    ) -> Sequence[str]:
        """Start the servers that an editor names; returns before they answer.

        Args:
            servers: the servers by name. One with the name of a running server, or with a variable that has our key, is
                not used.
            tasks: gets a task that runs them.
            over: ends them once it is set.

        Returns:
            A sentence about each server that is not used.
        """
        from tui_agent.mcp.server_config import key_variable
        from tui_agent.mcp.server_pool import ConfiguredServer

        notes: list[str] = []
        used: list[ConfiguredServer] = []
        for name, server in servers.items():
            if name in self.tasks:
                notes.append(f"The editor's tool server {name} is not used, because you have one of this name.")
            # An editor may take its list of servers from the project that it has open.
            elif (variable := key_variable(server)) is not None:
                notes.append(f"The editor's tool server {name} is not used: no such server gets {variable}.")
            else:
                used.append(ConfiguredServer(name, server, "the editor"))
        if used:
            started = asyncio.Event()
            tasks.create_task(self._keep(tuple(used), loop, policy, started, over))
            # The pool must be there before the first request asks for its tools.
            await started.wait()
        return notes

    async def _keep(
        self,
        servers: "tuple[ConfiguredServer, ...]",
        loop: AgentLoop,
        policy: PermissionPolicy,
        started: asyncio.Event,
        over: asyncio.Event,
    ) -> None:
        """Run servers until an event, and let the agent use their tools."""
        from .tool_servers import open_servers, server_parts

        parts = server_parts(policy.workspace, loop.bus, Locations.of_user())
        # Their schemas are never loaded on demand: only one list of servers can be.
        async with open_servers(servers, parts, policy, lambda: sys.maxsize) as pool:
            if pool is not None:
                before = loop.config.update_tools
                loop.config.update_tools = pool.update if before is None else partial(_update_both, before, pool.update)
                self._pools.append(pool)
            started.set()
            await over.wait()

    @property
    def commands(self) -> tuple[PromptCommand, ...]:
        """The prompts of the servers that run, for menus."""
        prompts = [(name, prompt) for name, task in sorted(self.tasks.items()) for prompt in task.prompts]
        # Others could not be typed as one word.
        commands = [_command(name, prompt) for name, prompt in prompts if _MENU_NAME.fullmatch(prompt.name)]
        return tuple(command for command in commands if not self._is_defined(f"/{command.slash}"))

    def list(self) -> tuple[ServerFact, ...]:
        """Return the servers, in the order of their configuration."""
        return tuple(_fact(one, self.tasks.get(one.name)) for pool in self._pools for one in pool.configured)

    def restart(self, name: str, /) -> str:
        """Order a new start of a server, without waiting for it; return empty, or a sentence if no such server runs."""
        task = self.tasks.get(name)
        if task is None:
            return f"No server {name} runs here; there are: {', '.join(self.tasks) or 'none'}."
        task.restart()
        return ""

    def log(self, name: str, /) -> str:
        """Return the last lines that a server wrote to its log; empty if no such server runs."""
        task = self.tasks.get(name)
        return task.log.text if task is not None else ""

    def login(self, name: str, /) -> str:
        """Begin to sign in to a server, without waiting for the user; return empty, or a sentence why it cannot."""
        task = self.tasks.get(name)
        return task.login() if task is not None else f"No server {name} runs here."

    def logout(self, name: str, /) -> str:
        """Forget the sign-in to a server; return one sentence with what was done, or why nothing was."""
        task = self.tasks.get(name)
        return task.logout() if task is not None else f"No server {name} runs here."

    def are_named_in(self, text: str, /) -> bool:
        """True if a text names a prompt or a resource of a configured server, which may not run."""
        configured = {one.name for pool in self._pools for one in pool.configured}
        return any(match[1] in configured for match in _NAMED.finditer(text))

    async def expand(self, text: str, /) -> str:
        """Return the prompt of a server that an input names, else the input followed by the resources that it names.

        An input that names neither, or only unknown servers, is returned unchanged.

        Raises:
            ToolError: a server does not have what the text names or does not run, or the prompt lacks an argument.
        """
        named = _PROMPT.match(text)
        if named is not None and not self._is_defined(text) and (task := self.tasks.get(named[1])) is not None:
            return await _prompt(task, named[2], named[3] or "")
        parts = [text]
        for match in _RESOURCE.finditer(text):
            if (task := self.tasks.get(match[1])) is not None:
                blocks = await task.resource(match[2])
                parts += [block.text if isinstance(block, TextBlock) else _NOT_ADDED for block in blocks]
        return "\n\n".join(parts)

    async def open_page(self, url: str, /) -> str:
        """Open a page in the user's browser; return empty once it is opened, else a sentence with the reason."""
        return await open_page(url)


async def open_configured_servers(
    launch: Launch,
    folder: FolderTrust,
    loop: AgentLoop,
    policy: PermissionPolicy,
    stack: AsyncExitStack,
) -> "ServerPool | None":
    """Start the servers in the background, until the stack closes, and let the agent use their tools; None: no server.

    Raises:
        ConfigurationError: the file of `--mcp-config` cannot be used.
    """
    if launch.options.mcp_config is None and not launch.settings.mcp and not (launch.cwd / SERVERS_FILE).exists():
        return None
    # Imported here so that a start without servers does not wait for it.
    from .tool_servers import ServerAnswers, configured_servers, open_servers, server_parts

    servers, notes = await asyncio.to_thread(configured_servers, launch.options, folder, launch.loaded)
    for note in notes:
        loop.bus.publish(Warned(code="left_out", text=note))
    parts = server_parts(launch.cwd, loop.bus, launch.locations, ServerAnswers(loop).functions)
    opened = open_servers(servers, parts, policy, lambda: loop.provider.model.context_window)
    pool = await stack.enter_async_context(opened)
    loop.config.update_tools = None if pool is None else pool.update
    return pool


async def _update_both(first: UpdateTools, second: UpdateTools, tools: ToolRegistry) -> None:
    await first(tools)
    await second(tools)


async def _prompt(task: "ServerTask", name: str, rest: str) -> str:
    offered = next((prompt for prompt in task.prompts if prompt.name == name), None)
    if offered is None:
        known = ", ".join(prompt.name for prompt in task.prompts) or "none"
        raise ToolError(f"The server {task.name} has no prompt {name}; it has: {known}.")
    return await task.prompt(name, _arguments(offered, rest, f"/{task.name}:{name}"))


def _arguments(prompt: "OfferedPrompt", rest: str, typed: str) -> dict[str, str]:
    """Return the arguments of a prompt: `name=value`, or values in the order of the prompt's arguments."""
    names = [name for name, _, _ in prompt.arguments]
    if len(names) == 1:
        # The only argument needs no quotes.
        words = [f"{names[0]}={rest.removeprefix(f'{names[0]}=')}"] if rest else []
    else:
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise ToolError(f"{typed}: {error}.") from error
    found: dict[str, str] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if sign and name in names:
            found[name] = value
        elif (free := next((one for one in names if one not in found), None)) is not None:
            found[free] = word
        else:
            raise ToolError(f"{typed} takes no argument {word}.")
    missing = [f"{name}=…" for name, _, is_required in prompt.arguments if is_required and name not in found]
    if missing:
        words_of = "; ".join(f"{name}: {words}" for name, words, _ in prompt.arguments if words)
        raise ToolError(f"Add {' '.join(missing)} to {typed}." + (f" ({words_of})" if words_of else ""))
    return found


def _fact(one: "ConfiguredServer", task: "ServerTask | None") -> ServerFact:
    if task is None:
        return ServerFact(one.name, one.origin, one.server.shown, "not enabled", "", "", (), (), (), ())
    return ServerFact(
        name=one.name,
        origin=one.origin,
        target=one.server.shown,
        state=task.state,
        error=task.error,
        info=task.info,
        tools=tuple(
            tool.raw_name + (f" (claims: {', '.join(tool.claims)})" if tool.claims else "") for tool in task.tools
        ),
        left_out=task.left_out,
        prompts=tuple(_command(one.name, prompt).usage for prompt in task.prompts),
        resources=tuple(f"@{one.name}:{resource.uri}" for resource in task.resources),
    )


def _command(server: str, prompt: "OfferedPrompt") -> PromptCommand:
    arguments = " ".join(f"{name}=…" if is_required else f"[{name}=…]" for name, _, is_required in prompt.arguments)
    return PromptCommand(f"{server}:{prompt.name}", arguments, prompt.description)
