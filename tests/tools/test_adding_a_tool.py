"""Adding a built-in tool takes one file and its line in the registry: tried in a copy of the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tui_agent
from tui_agent.tools import BUILT_IN_TOOLS, Workspace, default_tools

PACKAGE = Path(tui_agent.__file__).parent
TOOL = '''"""The symbols tool: names of the functions in a Python file."""

import ast

from pydantic import Field

from tui_agent.protocol import ToolContext, ToolResult
from tui_agent.protocol.tool import Accesses, PathSubject, Subject

from .typed_tool import Arguments, TypedTool
from .workspace import Workspace


class SymbolsArguments(Arguments):
    """The file to list."""

    path: str = Field(description="Python file.")


class SymbolsTool(TypedTool[SymbolsArguments]):
    """Lists the functions of a file."""

    def __init__(self, workspace: Workspace) -> None:
        super().__init__("symbols", "Lists the functions of a Python file.", SymbolsArguments, read_only=True)
        self._workspace = workspace

    def call_accesses(self, args: SymbolsArguments) -> Accesses:
        return Accesses(reads=frozenset({self._workspace.resolve(args.path)}))

    def call_subject(self, args: SymbolsArguments) -> Subject:
        return PathSubject(args.path, "read")

    def call_summary(self, args: SymbolsArguments) -> str:
        return args.path

    async def run(self, args: SymbolsArguments, context: ToolContext) -> ToolResult:
        tree = ast.parse(self._workspace.resolve(args.path).read_text())
        return ToolResult.of_text(", ".join(node.name for node in tree.body if isinstance(node, ast.FunctionDef)))
'''
LAST = '    "todo": lambda setup: TodoTool(),\n'
ENTRY = '    "symbols": lambda setup: SymbolsTool(setup.workspace),\n'
PROGRAM = """
from pathlib import Path
from tui_agent import Agent, ScriptedProvider, Workspace, call, default_tools, reply
root = Path.cwd()
tools = default_tools(Workspace(root, spool_dir=root / "spool"), is_read_only_command=lambda command: False)
model = ScriptedProvider([reply("Let me look.", call("symbols", path="shop.py")), reply("done")])
agent = Agent(model, tools=tools, rules=["allow symbols(shop.py)", "deny symbols(private/**)"])
result = agent.run_sync("Which functions are there?")
print([message.text for message in agent.history.messages() if message.role == "tool_result"], flush=True)

from tui_agent.cli.command_line import run_program
run_program(["permissions", "check"])
run_program(["tools", "list"])
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The environment of programs that import a copy of the package with one more tool."""
    copy = tmp_path / "copy" / "tui_agent"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "tools" / "symbols_tool.py").write_text(TOOL)
    registry = copy / "tools" / "__init__.py"
    text = registry.read_text("utf-8")
    assert LAST in text
    imported = text.replace("from .todo_tool", "from .symbols_tool import SymbolsTool\nfrom .todo_tool", 1)
    registry.write_text(imported.replace(LAST, LAST + ENTRY))
    return {**os.environ, "PYTHONPATH": str(copy.parent)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with a Python file."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "shop.py").write_text("def price():\n    ...\n\n\ndef total():\n    ...\n")
    return root


def test_the_model_can_call_it_rules_can_name_it_and_the_command_line_lists_it(
    environment: dict[str, str], project: Path
) -> None:
    rules = [["deny", "symbols(private/**)"], ["allow", "symbols"]]
    records = [{"tool": "symbols", "input": {"path": path}, "rules": rules} for path in ("shop.py", "private/x.py")]

    # One program for all: it compiles the whole copy.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=project,
        env=environment,
        input="".join(f"{json.dumps(record)}\n" for record in records),
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    called, allowed, denied, *listed = done.stdout.splitlines()
    assert called == "['price, total']"
    assert [json.loads(answer)["decision"] for answer in (allowed, denied)] == ["allow", "deny"]
    assert "symbols" in "\n".join(listed)


def test_a_tool_has_the_name_under_which_it_is_registered(tmp_path: Path) -> None:
    tools = default_tools(Workspace(tmp_path, spool_dir=tmp_path), is_read_only_command=lambda command: False)

    assert [tool.name for tool in tools] == list(BUILT_IN_TOOLS)
