"""`tui-agent mcp`: lists, adds, removes and tries tool servers."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import ValidationError

from tui_agent.cli.process.controlling_terminal import say, say_error, say_json
from tui_agent.mcp.server_config import is_server_name
from tui_agent.mcp.server_parts import QuestionAnswer, ServerQuestions
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.visible_text import escaped
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.effective_settings import load_effective_settings
from tui_agent.workbench.configuration.launch_options import LaunchOptions
from tui_agent.workbench.configuration.project_trust import folder_trust
from tui_agent.workbench.configuration.user_settings import remove_server, store_server
from tui_agent.workbench.tool_servers import configured_servers, server_parts
from tui_agent.workbench.user_commands import open_page

if TYPE_CHECKING:
    from tui_agent.mcp.server_pool import ConfiguredServer, ServerPool

FAILED = 1
"""Exit code if a server does not work."""


@click.group()
def mcp() -> None:
    """Manage tool servers (MCP)."""


@mcp.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_servers(as_json: bool) -> None:
    """List the servers that a start here would use, and where each is configured."""
    servers, notes = _configured()
    if as_json:
        say_json([{"name": one.name, "server": one.server.shown, "origin": one.origin} for one in servers])
        return
    for one in servers:
        off = "" if one.server.enabled else "  (not enabled)"
        say(f"{one.name:<16} {escaped(one.server.shown)}{off}  # {one.origin}")
    if not servers:
        say("no server would start here; add one: tui-agent mcp add NAME -- COMMAND [ARGUMENT …]")
    for note in notes:
        say(f"# {escaped(note)}")


@mcp.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("target", nargs=-1, required=True)
@click.option("--env", multiple=True, metavar="NAME=VALUE", help="Variable of the program. Repeatable.")
@click.option("--header", multiple=True, metavar="NAME:VALUE", help="Header of each HTTP request. Repeatable.")
@click.option("--bearer-token-env", metavar="VARIABLE", help="Variable of the environment with a bearer token.")
def add(
    name: str, target: Sequence[str], env: Sequence[str], header: Sequence[str], bearer_token_env: str | None
) -> None:
    """Add a server to your settings.

    TARGET is a command with its arguments, after `--`, or a URL.
    """
    if not is_server_name(name):
        raise click.UsageError(f"{name!r} is not a name of letters, digits, - and single _")
    is_url = len(target) == 1 and target[0].startswith(("http://", "https://"))
    values: JsonObject = {"url": target[0]} if is_url else {"command": target[0], "args": list(target[1:])}
    values |= {"env": _pairs(env, "=")} if env else {}
    values |= {"headers": _pairs(header, ":")} if header else {}
    values |= {"bearer_token_env": bearer_token_env} if bearer_token_env else {}
    try:
        # Before it is stored: a start would refuse the whole file.
        ToolServer.model_validate(values)
    except ValidationError as error:
        raise click.UsageError(error.errors()[0]["msg"]) from error
    file = Locations.of_user().user_file
    store_server(file, name, values)
    say(f"{name} was added to {file}; try it: tui-agent mcp test {name}")


@mcp.command()
@click.argument("name")
def remove(name: str) -> int:
    """Remove a server from your settings."""
    file = Locations.of_user().user_file
    if not remove_server(file, name):
        say_error(f"tui-agent: {file} has no server {name}")
        return FAILED
    say(f"{name} was removed from {file}")
    return 0


@mcp.command(name="test")
@click.argument("name")
def test_server(name: str) -> int:
    """Connect to a server, list what it offers, and report what failed."""
    found = _found(name)
    return FAILED if found is None else asyncio.run(_try(found))


async def _try(found: "ConfiguredServer") -> int:
    from tui_agent.mcp.server_pool import ServerPool

    server = found.server.model_copy(update={"enabled": True})
    locations = Locations.of_user()
    parts = server_parts(Path.cwd(), EventBus(), locations)
    alone = [type(found)(found.name, server, found.origin)]
    async with ServerPool(alone, parts, window=lambda: 0).running() as pool:
        await pool.tasks[found.name].settled.wait()
        return _report(pool, found.name)


@mcp.command()
@click.argument("name")
def login(name: str) -> int:
    """Sign in to a server over HTTP (OAuth), and store its tokens."""
    found = _found(name)
    return FAILED if found is None else asyncio.run(_login(found))


@mcp.command()
@click.argument("name")
def logout(name: str) -> int:
    """Forget the sign-in to a server."""
    from tui_agent.mcp.server_task import ServerTask

    if (found := _found(name)) is None:
        return FAILED
    parts = server_parts(Path.cwd(), EventBus(), Locations.of_user())
    say(ServerTask(found.name, found.server, found.origin, parts).logout())
    return 0


async def _login(found: "ConfiguredServer") -> int:
    from tui_agent.mcp.server_pool import ServerPool

    server = found.server.model_copy(update={"enabled": True})
    questions = ServerQuestions(ask=_ask_in_terminal)
    parts = server_parts(Path.cwd(), EventBus(), Locations.of_user(), questions)
    # Alone, so that no other server starts for a sign-in.
    pool = ServerPool([type(found)(found.name, server, found.origin)], parts, window=lambda: 0)
    task = pool.tasks[found.name]
    if refused := task.login():
        say_error(f"tui-agent: {refused}")
        return FAILED
    async with pool.running():
        await task.settled.wait()
        if task.state != "ready":
            say_error(f"tui-agent: {found.name}: {task.error}")
            return FAILED
    say(f"signed in to {found.name}")
    return 0


async def _ask_in_terminal(question: ServerQuestion) -> QuestionAnswer:
    """Show the page, open it after a yes, and take a pasted address; wait if the input has ended."""
    say(f"Sign in to {question.server} on this page:\n\n  {escaped(question.url)}\n")
    say("Type y to open it in your browser. If the browser cannot return here, paste the address it ends at.")
    while True:
        line = await _next_line()
        if line is None:
            # Another program runs this one; the answer can still come through the port.
            await asyncio.Event().wait()
        elif line.lower() in ("y", "yes"):
            say(await open_page(question.url) or "Waiting for the sign-in in your browser …")
        elif line.lower() in ("n", "no", "q"):
            return QuestionAnswer("decline")
        elif line.startswith(("http://", "https://")):
            return QuestionAnswer("accept", {field.name: line for field in question.fields})


async def _next_line() -> str | None:
    """Return the next line of the input; None at its end. A cancelled wait leaves the input alone."""
    loop = asyncio.get_running_loop()
    readable: asyncio.Future[None] = loop.create_future()
    try:
        # Not a thread: a read that blocks would keep the program from ending after the sign-in.
        loop.add_reader(sys.stdin.fileno(), lambda: readable.done() or readable.set_result(None))
    except (OSError, ValueError):
        return None
    try:
        await readable
    finally:
        loop.remove_reader(sys.stdin.fileno())
    line = sys.stdin.readline()
    return line.strip() if line else None


def _found(name: str) -> "ConfiguredServer | None":
    """Return a server of this name; None, and a message, if there is none."""
    servers, notes = _configured()
    found = next((one for one in servers if one.name == name), None)
    if found is None:
        known = ", ".join(one.name for one in servers) or "none"
        say_error(f"tui-agent: no server {name} is configured; there are: {known}")
        for note in notes:
            say_error(f"# {escaped(note)}")
    return found


def _report(pool: "ServerPool", name: str) -> int:
    task = pool.tasks[name]
    say(f"{name}: {escaped(task.server.shown)}")
    if task.state != "ready":
        say(f"failed: {task.error}")
        for line in task.log.text.splitlines()[-20:]:
            say(f"  {line}")
        return FAILED
    say(f"connected: {task.info or 'the server does not say its name'}")
    for tool in task.tools:
        claims = f" (claims: {', '.join(tool.claims)})" if tool.claims else ""
        say(f"tool {tool.name}{claims}")
    for problem in task.left_out:
        say(f"tool left out: {problem}")
    for prompt in task.prompts:
        say(f"prompt /{name}:{escaped(prompt.name)} {' '.join(argument[0] for argument in prompt.arguments)}".rstrip())
    for resource in task.resources:
        say(f"resource @{name}:{escaped(resource.uri)}")
    return 0


def _configured() -> tuple[tuple["ConfiguredServer", ...], tuple[str, ...]]:
    options = LaunchOptions.for_command(Path.cwd())
    locations = Locations.of_user()
    loaded = load_effective_settings(options, locations)
    servers, notes = configured_servers(options, folder_trust(options.cwd, locations), loaded)
    return servers, (*loaded.ignored, *notes)


def _pairs(texts: Sequence[str], separator: str) -> dict[str, str]:
    pairs = [text.partition(separator) for text in texts]
    if wrong := next((text for text, pair in zip(texts, pairs, strict=True) if not pair[0] or not pair[1]), None):
        raise click.UsageError(f"{wrong!r} is not NAME{separator}VALUE")
    return {name.strip(): value.strip() for name, _, value in pairs}
