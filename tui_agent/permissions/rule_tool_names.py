"""Tools that rules may name. A rule for an unknown tool is an error: a denial with a typo would never apply."""

import difflib

from tui_agent.protocol.errors import ConfigurationError

from .rule import Rule

RULE_TOOL_NAMES = ("bash", "read", "write", "edit", "glob", "grep", "todo", "fetch", "agent")
"""Tools a rule may name, besides `mcp__SERVER__TOOL` and names with a `*`."""


def refuse_unknown_tool(rule: Rule) -> None:
    """Check that a rule can apply.

    Raises:
        ConfigurationError: no such tool; the text names the rule, its source and the closest tool.
    """
    if rule.tool in RULE_TOOL_NAMES or "*" in rule.tool or rule.tool.startswith("mcp__"):
        return
    near = difflib.get_close_matches(rule.tool, RULE_TOOL_NAMES, n=1)
    known = f"did you mean {near[0]}?" if near else f"the tools are {', '.join(RULE_TOOL_NAMES)}"
    where = f"{rule.origin}: " if rule.origin else ""
    raise ConfigurationError(f"{where}the rule {rule.text!r} names no tool; {known}")
