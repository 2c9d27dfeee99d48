"""The seven built-in tools, which share one workspace, and the parts they are built from."""

from tui_agent.protocol.tool import Tool

from .bash_tool import BashTool, ReadOnlyCheck
from .edit_tool import EditTool
from .glob_tool import GlobTool
from .grep_tool import GrepTool
from .read_tool import ReadTool
from .sandbox import Sandbox, sandbox_problem
from .todo_tool import TodoTool
from .typed_tool import Arguments, TypedTool
from .workspace import Workspace
from .write_tool import WriteTool

__all__ = [
    "Arguments",
    "BashTool",
    "EditTool",
    "GlobTool",
    "GrepTool",
    "ReadOnlyCheck",
    "ReadTool",
    "Sandbox",
    "TodoTool",
    "TypedTool",
    "Workspace",
    "WriteTool",
    "default_tools",
    "sandbox_problem",
]


def default_tools(
    workspace: Workspace, *, is_read_only_command: ReadOnlyCheck, sandbox: Sandbox | None = None
) -> list[Tool]:
    """Return the built-in tools, in the order the model sees them.

    Args:
        workspace: shared by all of them, so that write and edit know which files read has shown.
        is_read_only_command: returns True if a shell command only reads: `permissions.is_read_only_command`, or
            another function of the command, or of the command and the workspace's root; it never raises.
        sandbox: sandbox for shell commands; None: they run without one.

    Raises:
        ConfigurationError: `is_read_only_command` takes other arguments.
    """
    return [
        ReadTool(workspace),
        WriteTool(workspace),
        EditTool(workspace),
        BashTool(workspace, is_read_only_command=is_read_only_command, sandbox=sandbox),
        GlobTool(workspace),
        GrepTool(workspace),
        TodoTool(),
    ]
