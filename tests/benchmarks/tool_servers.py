"""Tool servers that others wrote, by hand: what they offer and answer, and what three of them cost.

    python -m tests.benchmarks.tool_servers PYTHON_BIN NODE_MODULES

PYTHON_BIN is the `bin` of a virtual environment with `mcp-server-time`, `mcp-server-fetch` and `mcp-server-git`;
NODE_MODULES has `@modelcontextprotocol/server-everything`, `server-filesystem` and `server-memory`.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import psutil

from tui_agent.execution import ToolRegistry
from tui_agent.mcp.server_parts import QuestionAnswer, SamplingAnswer, SamplingRequest, ServerParts, ServerQuestions
from tui_agent.mcp.server_pool import ConfiguredServer, ServerPool
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.server_entries import ToolServer
from tui_agent.protocol.server_question import FieldValue, FormField, ServerQuestion
from tui_agent.protocol.tool import ToolContext
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.command_launcher import HelperTree

CALLS: dict[str, list[tuple[str, JsonObject]]] = {
    "time": [("get_current_time", {"timezone": "Europe/Paris"})],
    "git": [("git_status", {"repo_path": "."})],
    "fetch": [],
    "everything": [
        ("echo", {"message": "hi"}),
        ("trigger-long-running-operation", {"duration": 1, "steps": 4}),
        ("get-tiny-image", {}),
        ("trigger-elicitation-request", {}),
        ("trigger-sampling-request", {"prompt": "Say hi.", "maxTokens": 20}),
        ("get-structured-content", {"location": "New York"}),
    ],
    "filesystem": [("list_directory", {"path": "."})],
    "memory": [("create_entities", {"entities": [{"name": "a", "entityType": "b", "observations": ["c"]}]})],
}
"""Calls of each server."""


def servers(python: Path, modules: Path, folder: Path) -> dict[str, ToolServer]:
    """Return the servers that are installed."""

    def node(name: str, *args: str) -> ToolServer:
        script = modules / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js"
        return ToolServer(command="node", args=(str(script), *args), startup_timeout=60, sampling=name == "everything")

    found = {
        "time": ToolServer(command=str(python / "mcp-server-time"), startup_timeout=60),
        "fetch": ToolServer(command=str(python / "mcp-server-fetch"), startup_timeout=60),
        "git": ToolServer(command=str(python / "mcp-server-git"), args=("-r", str(folder)), startup_timeout=60),
        "everything": node("everything"),
        "filesystem": node("filesystem", str(folder)),
        "memory": node("memory").model_copy(update={"env": {"MEMORY_FILE_PATH": str(folder / "memory.json")}}),
    }

    def program(server: ToolServer) -> Path:
        return Path(server.args[0] if server.command == "node" else server.command or "")

    return {name: server for name, server in found.items() if program(server).exists()}


def filled(field: FormField) -> FieldValue:
    """Return some value that fits a field."""
    if field.default is not None:
        return list(field.default) if isinstance(field.default, tuple) else field.default
    match field.kind:
        case "flag":
            return True
        case "integer" | "number":
            return field.least or 1
        case "choice":
            return field.choices[0].value
        case "choices":
            return [field.choices[0].value]
        case "text":
            return {"email": "a@example.com", "uri": "https://example.com", "date": "2026-01-31"}.get(
                field.format, "text"
            )


async def ask(question: ServerQuestion) -> QuestionAnswer:
    """Answer as a user who fills in everything."""
    print(f"    asked: {question.kind}: {question.message} {[field.name for field in question.fields]}")
    values = {field.name: filled(field) for field in question.fields if field.format != "date-time"}
    return QuestionAnswer("accept", question.content(values) if question.fields else None)


async def sample(request: SamplingRequest) -> SamplingAnswer:
    """Answer as a model."""
    print(f"    sampling: {len(request.messages)} messages, {request.max_tokens} tokens")
    return SamplingAnswer("hi", "no-model", "end_turn")


async def run(found: dict[str, ToolServer], folder: Path) -> None:
    """Start all servers, list what they offer, and call their tools."""
    parts = ServerParts(
        environment=child_environment(os.environ),
        secrets=dict(os.environ),
        root=folder,
        publish=lambda _: None,
        questions=ServerQuestions(ask=ask, sample=sample),
        new_tree=partial(HelperTree, folder),
    )
    pool = ServerPool([ConfiguredServer(name, one, "") for name, one in found.items()], parts, window=lambda: 10**7)
    tools = ToolRegistry()
    reports: list[object] = []
    began = time.monotonic()
    async with pool.running():
        await pool.update(tools)
        print(f"all ready after {time.monotonic() - began:.1f} s")
        for name, task in pool.tasks.items():
            counts = f"{len(task.tools)} tools, {len(task.prompts)} prompts, {len(task.resources)} resources"
            print(f"{name}: {task.state} {task.error}; {task.info}; {counts}")
            for problem in task.left_out:
                print(f"    left out: {problem}")
            for raw, arguments in CALLS[name]:
                tool = tools.find(f"mcp__{name}__{raw}")
                if tool is None:
                    print(f"    {raw}: not offered; there are {[one.raw_name for one in task.tools]}")
                    continue
                if "repo_path" in arguments or "path" in arguments:
                    arguments = dict.fromkeys(arguments, str(folder))
                reports.clear()
                try:
                    result = await tool.execute(arguments, ToolContext("c", tool.name, report=reports.append))
                    kinds = [block.type for block in result.content]
                    text = " ".join(result.text.split("\n", 1)[-1].split())[:90]
                    print(f"    {raw}: {'error' if result.is_error else 'ok'} {kinds} {len(reports)} reports: {text}")
                except ToolError as error:
                    print(f"    {raw}: {error}")
        mine = psutil.Process().children(recursive=True)
        print(f"resident: {psutil.Process().memory_info().rss // 1024**2} MB; processes: {len(mine)}")
    print(f"left running: {[one for one in mine if one.is_running() and one.status() != 'zombie']}")


def cost_of_import() -> None:
    """Print what the client costs a program that has a server, against one that has none."""
    for name, module in (("none", "tui_agent.workbench.workbench"), ("client", "tui_agent.mcp.server_session")):
        code = f"import tui_agent.workbench.workbench, {module}, psutil; print(psutil.Process().memory_info().rss)"
        rss = min(int(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
        print(f"engine and {name}: {rss / 1024**2:.1f} MB resident")


def main() -> None:
    """Run all that is installed."""
    python, modules = (Path(text) for text in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        subprocess.run(["git", "init", "-q", made], check=True)
        asyncio.run(run(servers(python, modules, folder), folder))
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"CPU of the client: {used.ru_utime + used.ru_stime:.1f} s")
    cost_of_import()


if __name__ == "__main__":
    main()
