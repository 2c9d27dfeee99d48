"""Decisions on tool calls: modes, rules, the floor under every write, and analysis of shell commands."""

from tui_agent.protocol.permissions import PermissionMode

from .policy import SECRET_FILES, PermissionPolicy, accesses_of_command, is_read_only_command
from .rules.rule import Rule

__all__ = ["SECRET_FILES", "PermissionMode", "PermissionPolicy", "Rule", "accesses_of_command", "is_read_only_command"]
