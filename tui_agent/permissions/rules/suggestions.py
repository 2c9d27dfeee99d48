"""Rules to offer with an approval, the narrowest that would allow such a call again, and checks of typed ones."""

import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tui_agent.permissions.commands.catalogue import INTERPRETERS, SHELLS, group, words_by_program, wrapper, writer
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import Sequence as CommandSequence
from tui_agent.permissions.shell.syntax import SimpleCommand, names
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import CommandSubject, PathSubject, Subject

from .patterns import BORDER, CommandPattern, command_patterns
from .rule import Rule

_SCRIPTED = names("npm pnpm yarn")
_RUN = (["run"], ["run-script"])


_PATH_TOOLS = frozenset(("edit", "write", "read"))
"""Tools whose rules a rule for a command may need besides."""
_STARS = re.compile(r"(?<!\\)[*?\[]")


@dataclass(frozen=True, slots=True)
class Offer:
    """Rules that may be stored for one part of a call."""

    proposed: str
    choices: tuple[str, ...]
    """Every rule, narrowest first, including the proposed one."""


def offer_for_command(tool: str, text: str) -> Offer | None:
    """Return the rules for one simple command, or None if no rule should be stored.

    These are: the exact words; the first two words with any arguments, where the second names the action; and the name
    with any arguments, for commands with a single purpose.
    """
    words = _storable_words(text)
    if words is None or (words[0] in _SCRIPTED and words[1:2] in _RUN and len(words) > 2 and not _is_plain(words[2])):
        return None
    is_known = _is_known(words[0])
    wider = [words[:count] for count in (1, 2, 3) if count <= len(words) and may_be_prefix(words[:count])]
    prefixes = [f"{tool}({' '.join(wider[0])}:*)"] if wider and (is_known or len(words) > 2) else []
    # A star in a rule would match any text.
    is_exact = not any("*" in word or "\n" in word for word in words)
    exact = [f"{tool}({' '.join(shlex.quote(word) for word in words)})"] if is_exact else []
    proposed = [*prefixes, *exact] if is_known else exact
    return Offer(proposed[0], (*exact, *prefixes)) if proposed else None


def offer_for_path(tool: str, path: str, workspace: str) -> Offer | None:
    """Return the rules for one path, absolute and without links, or None if no pattern can express it.

    These are: the path, and in the workspace its folder and the workspace.
    """
    if any(letter in "\n\r\\" for letter in path) or not path.isprintable() or path.endswith(" "):
        return None
    is_inside = path.startswith(workspace + "/")
    pattern = path.removeprefix(workspace) if is_inside else f"/{path}"
    for letter in "*?[]":
        pattern = pattern.replace(letter, f"\\{letter}")
    wider = (f"{pattern.rpartition('/')[0]}/**", "/**") if is_inside else ()
    choices = tuple(dict.fromkeys(f"{tool}({one})" for one in (pattern, *wider)))
    return Offer(choices[0], choices)


def may_be_prefix(words: Sequence[str]) -> bool:
    """True if a rule may allow these words with any arguments: proposed rules and typed ones pass the same check."""
    name = words[0]
    if not may_be_stored(words):
        return False
    if name in group("single_purpose"):
        return True
    if _is_known(name):
        is_action = len(words) > 1 and words[1] in words_by_program("offered_actions").get(name, ())
        return is_action or (name in _SCRIPTED and words[1:2] in _RUN and len(words) > 2 and _is_plain(words[2]))
    # The second word must look like a subcommand.
    plain = len(words) > 1 and _is_plain(words[1]) and words[1][0].isalpha() and "." not in words[1]
    return plain and _is_plain(name) and wrapper(name) is None and writer(name) is None


def _storable_words(text: str) -> list[str] | None:
    """Return the words of a simple command for which a rule may be stored, or None."""
    statement = read_script(text)
    while isinstance(statement, CommandSequence) and len(statement.parts) == 1:
        statement = statement.parts[0]
    if not isinstance(statement, SimpleCommand) or not statement.words:
        return None
    if not all(word.is_fixed for word in statement.words):
        return None
    words = [word.value for word in statement.words]
    return words if may_be_stored(words) else None


def may_be_stored(words: Sequence[str]) -> bool:
    """True if a rule for a command with these first words may be stored."""
    name = words[0].rsplit("/", 1)[-1]
    runs = any(wrapper(*words[:count]) for count in (2, 3))
    return name not in (group("never_offered") | INTERPRETERS | SHELLS) and not runs and "\\" not in "".join(words)


def _is_known(name: str) -> bool:
    """True if a table says which words of a command any arguments may follow."""
    return name in words_by_program("offered_actions") or name in _SCRIPTED or name in group("single_purpose")


def _is_plain(word: str) -> bool:
    return bool(word) and all(letter.isalnum() or letter in "._:-" for letter in word) and not word.endswith(":")


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
        what = "a pattern" if _STARS.search(pattern) else "another path"
        return f"Outside the workspace only the proposed path can be allowed, not {what}."
    return ""
