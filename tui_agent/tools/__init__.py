"""The built-in tools, which share one workspace, and the parts they are built from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tui_agent.protocol.tool import Tool
from tui_agent.protocol.trial import Trials

from .ask_user_tool import AskUserTool
from .bash_tool import BashTool, ReadOnlyCheck
from .edit_tools import EditTool, WriteTool
from .glob_tool import GlobTool
from .grep_tool import GrepTool
from .job_tools import BashOutputTool, KillBashTool
from .page_tools import AnswerFromPage, FetchTool, Search, WebSearchTool, can_fetch_pages
from .plan_tools import PresentPlanTool, TodoTool
from .processes.background_jobs import BackgroundJobs
from .read_tool import ReadTool
from .typed_tool import Arguments, TypedTool
from .workspace import Workspace

__all__ = [
    "BUILT_IN_TOOLS",
    "JOB_TOOLS",
    "WEB_TOOLS",
    "Arguments",
    "AskUserTool",
    "BackgroundJobs",
    "BashOutputTool",
    "BashTool",
    "EditTool",
    "FetchTool",
    "GlobTool",
    "GrepTool",
    "KillBashTool",
    "PresentPlanTool",
    "ReadOnlyCheck",
    "ReadTool",
    "TodoTool",
    "ToolSetup",
    "TypedTool",
    "Workspace",
    "WriteTool",
    "default_tools",
    "web_tools",
]


@dataclass(frozen=True, slots=True)
class ToolSetup:
    """The parts that built-in tools are built from."""

    workspace: Workspace
    is_read_only_command: ReadOnlyCheck
    trials: Trials | None
    jobs: BackgroundJobs | None = None
    report_problem: Callable[[str], None] | None = None


BUILT_IN_TOOLS: Mapping[str, Callable[[ToolSetup], Tool]] = {
    "read": lambda setup: ReadTool(setup.workspace),
    "write": lambda setup: WriteTool(setup.workspace),
    "edit": lambda setup: EditTool(setup.workspace),
    "bash": lambda setup: BashTool(
        setup.workspace,
        is_read_only_command=setup.is_read_only_command,
        trials=setup.trials,
        jobs=setup.jobs,
        report_problem=setup.report_problem,
    ),
    "glob": lambda setup: GlobTool(setup.workspace),
    "grep": lambda setup: GrepTool(setup.workspace),
    "todo": lambda setup: TodoTool(),
    "ask_user": lambda setup: AskUserTool(),
}
"""The built-in tools by name, in the order in which the model sees them. A new tool is a file and its line here."""

JOB_TOOLS: Mapping[str, Callable[[BackgroundJobs], Tool]] = {"bash_output": BashOutputTool, "kill_bash": KillBashTool}
"""The tools for background commands, in a session that has them."""

WEB_TOOLS = ("fetch", "web_search")
"""Names of the tools for the web: `fetch` needs the extra `web`, `web_search` an endpoint that can search."""


def default_tools(
    workspace: Workspace,
    *,
    is_read_only_command: ReadOnlyCheck,
    trials: Trials | None = None,
    jobs: BackgroundJobs | None = None,
    report_problem: Callable[[str], None] | None = None,
) -> list[Tool]:
    """Return the built-in tools, in the order the model sees them.

    Args:
        workspace: shared by all of them, so that write and edit know which files read has shown.
        is_read_only_command: returns True if a shell command only reads: `permissions.is_read_only_command`, or
            another function of the command, or of the command and the workspace's root; it never raises.
        trials: makes the layers in which shell commands run first; None: they run outside.
        jobs: keeps commands that run in the background, while its context is open; None: none do.
        report_problem: called with the reason when no layer could be made for a command.

    Raises:
        ConfigurationError: `is_read_only_command` takes other arguments.
    """
    setup = ToolSetup(workspace, is_read_only_command, trials, jobs, report_problem)
    tools = [build(setup) for build in BUILT_IN_TOOLS.values()]
    return tools if jobs is None else [*tools, *(build(jobs) for build in JOB_TOOLS.values())]


def web_tools(answer: AnswerFromPage | None = None, search: Search | None = None) -> list[Tool]:
    """Return the tools for the web: `fetch` if its packages are installed, and `web_search` if there is a `search`.

    Without `answer`, `fetch` only returns pages.
    """
    # Without its packages every call would fail, so that the model is not offered it.
    tools: list[Tool] = [FetchTool(answer=answer)] if can_fetch_pages() else []
    return tools if search is None else [*tools, WebSearchTool(search)]
