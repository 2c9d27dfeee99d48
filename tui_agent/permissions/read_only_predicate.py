"""Facts about shell commands for their tool: the policy's view without rules, in mode `ask`."""

from collections.abc import Sequence
from pathlib import Path

from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.tool import Accesses

from .evaluator.command_judge import CommandJudge
from .paths.path_facts import PathLookup
from .paths.path_judge import PathJudge
from .rules.rule_set import RuleSet


def is_read_only_command(command: str, workspace: Path, readable_paths: Sequence[Path] = ()) -> bool:
    """True if a command is known to only read; never raises, and is False in doubt.

    Args:
        command: byte for byte as it would run.
        workspace: the directory that it may read.
        readable_paths: paths outside that may be read like it.
    """
    judge = _judge_without_rules(workspace, readable_paths)
    return judge.judge("bash", command, PermissionMode.ASK, []).decision == "allow"


def accesses_of_command(command: str, workspace: Path) -> Accesses | None:
    """Return every path that a command reads or changes; None unless the list is certainly complete. Never raises.

    Args:
        command: byte for byte as it would run.
        workspace: the directory in which it runs.
    """
    return _judge_without_rules(workspace, ()).accesses(command)


def _judge_without_rules(workspace: Path, readable_paths: Sequence[Path]) -> CommandJudge:
    path_lookup = PathLookup(workspace, readable_paths=readable_paths)
    return CommandJudge(PathJudge(path_lookup, RuleSet((), path_lookup.workspace, path_lookup.root)))
