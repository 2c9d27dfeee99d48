"""The tools that rules may name, so that a misspelt one is told: a denial that never applies is worse than none."""

import difflib

from tui_agent.protocol.errors import ConfigurationError

from .rule import Rule

RULE_TOOL_NAMES = ("bash", "read", "write", "edit", "glob", "grep", "todo", "fetch", "agent")
"""Tools a rule may name (interface §4), beside `mcp__SERVER__TOOL` and names with a `*`."""


def refuse_unknown_tool(rule: Rule) -> None:
    """Lets rules pass that may apply.

    Raises:
        ConfigurationError: the rule names no tool; the text names the rule, where it stands and the nearest tool.
    """
    if rule.tool in RULE_TOOL_NAMES or "*" in rule.tool or rule.tool.startswith("mcp__"):
        return
    near = difflib.get_close_matches(rule.tool, RULE_TOOL_NAMES, n=1)
    known = f"did you mean {near[0]}?" if near else f"there are {', '.join(RULE_TOOL_NAMES)}"
    where = f"{rule.origin}: " if rule.origin else ""
    raise ConfigurationError(f"{where}the rule {rule.text!r} names no tool; {known}")
