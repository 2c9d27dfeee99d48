"""Kinds of tools, which give their names the same colour in every part of the screen."""

from typing import Literal

ToolKind = Literal["read", "change", "run", "agent", "other"]
"""A tool reads, changes files, runs commands, starts a sub-agent, or does something else."""

TOOL_KINDS: tuple[ToolKind, ...] = ("read", "change", "run", "agent", "other")

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("read", "grep", "glob", "ls", "fetch", "web_search"), "read"),
    **dict.fromkeys(("write", "edit"), "change"),
    "bash": "run",
    "agent": "agent",
}


def tool_kind(name: str) -> ToolKind:
    """Return the kind of a tool."""
    return _KINDS.get(name, "other")
