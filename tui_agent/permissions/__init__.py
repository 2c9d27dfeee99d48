"""Decisions on tool calls: modes, rules, the floor under every write, and analysis of shell commands."""

from tui_agent.protocol.permissions import PermissionMode

from .policy import SECRET_FILES, PermissionPolicy, is_read_only_command
from .rules.rule import Rule

__all__ = ["SECRET_FILES", "PermissionMode", "PermissionPolicy", "Rule", "is_read_only_command"]
