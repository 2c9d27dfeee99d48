"""The built-in tools, for the app, for print mode and for the commands that check calls."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.permissions import is_read_only_command
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.server_entries import LookUp
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.trial import Trials
from tui_agent.tools import BackgroundJobs, Workspace, default_tools, web_tools
from tui_agent.tools.file_states import ContentStore
from tui_agent.tools.processes.spool_file import SESSION_SPOOL_LIMIT

from .configuration.permission_rules import RULE_TOOL_NAMES, rule_tool_names

if TYPE_CHECKING:
    from .sessions.side_requests import SideRequests

_ADDED_TOOLS = ("skill", "present_plan", "lookup")
"""Tools that only some sessions have."""


def built_in_tools(
    root: Path,
    spool_dir: Path | None = None,
    trials: Trials | None = None,
    contents: ContentStore | None = None,
    private: Sequence[Path] = (),
    output_limit: int | None = None,
    warn: Callable[[str], None] | None = None,
    protected: ProtectedTree | None = None,
    warn_of_protected: Callable[[str], None] | None = None,
    note_withheld: Callable[[str], None] | None = None,
    jobs: BackgroundJobs | None = None,
    side_requests: "SideRequests | None" = None,
    report_problem: Callable[[str], None] | None = None,
    look_up: LookUp | None = None,
    *,
    is_trusted: bool = True,
) -> list[Tool]:
    """Return the built-in tools for a workspace.

    Args:
        spool_dir: directory for long output; None: one in the system's temporary directory, created on demand.
        trials: makes the layers in which shell commands run first; None: they run outside.
        contents: stores the content of files before a change; None: it is not stored.
        private: tui-agent's own directories, in which changes by commands are not looked for.
        output_limit: most bytes of long outputs that are saved; None: the default.
        warn: called with a warning for the user once this limit is reached.
        protected: the protected paths, in which changes by commands are reported; None: they are not.
        warn_of_protected: called with a warning for the user after such a change.
        note_withheld: called once with a note for the user on the variables that commands do not inherit.
        jobs: keeps the background commands; None: the tools describe them, and start none.
        side_requests: answers questions about pages, and searches the web if it can; None: neither is offered.
        report_problem: called with the reason when no layer could be made for a command.
        look_up: answers questions about code; None: `lookup` is not offered.
        is_trusted: False if git may run for tui-agent only behind walls.
    """
    spool = spool_dir or Path(tempfile.gettempdir()) / "tui-agent-spool"
    workspace = Workspace(
        root,
        spool_dir=spool,
        contents=contents,
        private=private,
        spool_limit=SESSION_SPOOL_LIMIT if output_limit is None else output_limit,
        warn=warn,
        protected_files=None if protected is None else protected.files,
        warn_of_protected=warn_of_protected,
        is_trusted=is_trusted,
        note_withheld=note_withheld,
        trial_temporary=None if trials is None else trials.temporary,
    )
    tools = default_tools(
        workspace,
        is_read_only_command=lambda command: is_read_only_command(command, root, (spool,)),
        trials=trials,
        report_problem=report_problem,
        jobs=jobs or BackgroundJobs(),
    )
    return [*tools, *_lookup_tools(workspace, look_up), *_web_tools(side_requests)]


def _lookup_tools(workspace: Workspace, look_up: LookUp | None) -> list[Tool]:
    if look_up is None:
        return []
    # Imported here so that a start without language servers does not wait for it.
    from tui_agent.tools.symbol_tool import LookupTool

    return [LookupTool(workspace, look_up)]


def _web_tools(side_requests: "SideRequests | None") -> list[Tool]:
    if side_requests is None:
        return web_tools()
    return web_tools(side_requests.answer, side_requests.search if side_requests.can_search else None)


def offered_tools(patterns: Sequence[str] | None) -> Callable[[str], bool] | None:
    """Return a function that is true for the names of the tools that patterns offer; None for all tools.

    Raises:
        ConfigurationError: a name without `*` belongs to no tool; tools of servers are not known yet.
    """
    if patterns is None:
        return None
    for name in patterns:
        if "*" not in name and "__" not in name:
            known = (*RULE_TOOL_NAMES, *_ADDED_TOOLS)
            known = known if name in known else (*rule_tool_names(), *_ADDED_TOOLS)
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]}?" if near else f"; the tools are {', '.join(known)}"
                raise ConfigurationError(f"--tools: no tool is named {name!r}{hint}")
    return lambda tool: any(fnmatchcase(tool, pattern) for pattern in patterns)


def tool_finder(root: Path, more: Iterable[Tool] = ()) -> Callable[[str], Tool | None]:
    """Return a function that finds a built-in tool, or one of `more`, by its name; it returns None for other names.

    A tool of `more` replaces a built-in one of its name.
    """
    tools = {tool.name: tool for tool in (*built_in_tools(root), *more)}
    return tools.get
