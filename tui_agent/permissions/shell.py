"""Whether a shell command only reads: the judgement of the policy, with no rules and in the mode that asks."""

from pathlib import Path

from tui_agent.protocol.permissions import PermissionMode

from .command_judge import CommandJudge
from .path_facts import PathBook
from .path_judge import PathJudge
from .rule_book import RuleBook


def is_read_only_command(command: str, workspace: Path) -> bool:
    """Whether a command is known to do nothing but read inside the workspace; never raises, says no when in doubt."""
    book = PathBook(workspace)
    judge = CommandJudge(PathJudge(book, RuleBook((), book.workspace, book.root)))
    return judge.judge("bash", command, PermissionMode.ASK, []).decision == "allow"
