"""Checks of a rule that the user typed for an approval: never wider than the rules that could be proposed."""

import re
from collections.abc import Collection

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import CommandSubject, PathSubject, Subject

from .command_pattern import BORDER, CommandPattern, command_patterns
from .rule import Rule
from .suggestions import may_be_prefix, may_be_stored

_PATH_TOOLS = frozenset(("edit", "write", "read"))
"""Tools whose rules a rule for a command may need besides."""
_GLOB = re.compile(r"(?<!\\)[*?\[]")


def refusal_of_line(line: str, tool: str, subject: Subject | None, offered: Collection[str]) -> str:
    """Return why a typed rule may not be stored, in words for the user; empty if it may.

    Args:
        line: one rule, as typed.
        tool: the tool of the call.
        subject: what the call is about.
        offered: the rules that were proposed for the call, one on each line.
    """
    try:
        rule = Rule.parse("allow", line)
    except ConfigurationError as error:
        return str(error)
    if rule.text in offered:
        return ""
    tools = {Rule.parse("allow", text).tool for text in offered}
    if rule.tool not in tools:
        return f"A rule for this call must be one for {' or '.join(sorted(tools))}, not for {rule.tool}."
    if isinstance(subject, CommandSubject) and rule.tool == tool:
        return _refusal_of_command(rule)
    if isinstance(subject, CommandSubject | PathSubject) and rule.tool in _PATH_TOOLS:
        return _refusal_of_path(rule)
    return f"A rule for {tool} cannot be changed, only taken as proposed."


def _refusal_of_command(rule: Rule) -> str:
    if rule.pattern is None:
        return f"`{rule.tool}` alone would allow every command; name one, as in `{rule.tool}(make test:*)`."
    # Quotes have two readings, and the rule matches what either of them means; the last one is without quotes.
    refusals = (_refusal_of_pattern(pattern) for pattern in reversed(command_patterns(rule.pattern)))
    return next((refusal for refusal in refusals if refusal), "")


def _refusal_of_pattern(pattern: CommandPattern) -> str:
    if pattern.is_everything:
        return "This would allow every command; name one, as in `make test:*`."
    first, *others = pattern.pieces
    if others:
        return "A * would match any text there. Only `:*` at the end is possible: any arguments may follow."
    words = first.split(BORDER)
    name = words[0].rsplit("/", 1)[-1]
    if "=" in words[0]:
        return "A rule cannot begin with a variable; name the command first."
    if not may_be_stored(words):
        return f"No rule for `{name}` is stored from here: it can run or change nearly anything."
    if pattern.is_prefix and not may_be_prefix(words):
        return (
            f"`{' '.join(words)}` with any arguments allows too much. Name more of the command, "
            "or spell it out whole, without `:*`."
        )
    return ""


def _refusal_of_path(rule: Rule) -> str:
    pattern = (rule.pattern or "").strip()
    if not pattern:
        return f"`{rule.tool}` alone would allow every file; name some, as in `{rule.tool}(/src/**)`."
    if pattern.startswith(("//", "~")):
        what = "a pattern" if _GLOB.search(pattern) else "another path"
        return f"Outside the workspace only the proposed path can be allowed, not {what}."
    return ""
