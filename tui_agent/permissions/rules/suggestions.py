"""Rules to offer with an approval, the narrowest that would allow such a call again, and checks of typed ones."""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from tui_agent.permissions.commands.builtins import is_harmless_setting
from tui_agent.permissions.commands.catalogue import (
    INTERPRETERS,
    SHELLS,
    canonical_name,
    group,
    matching_row,
    pairs,
    without_interpreter,
    words_by_program,
    wrapper,
    writer,
)
from tui_agent.permissions.paths.path_resolution import is_within
from tui_agent.permissions.paths.protected_paths import obeyed_name
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import Sequence as CommandSequence
from tui_agent.permissions.shell.syntax import SimpleCommand, names
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import CommandSubject, PathSubject, Subject

from .patterns import BORDER, CommandPattern, command_patterns
from .rule import Rule
from .rule_coverage import words_to_spell

_SCRIPTED = names("npm pnpm yarn")
_RUN = (["run"], ["run-script"])
_PROJECT_TOOL = re.compile(r"(?:\./)?(?:\.?venv/bin|node_modules/\.bin|vendor/bin)/[\w.-]+\Z")
_BUILT = re.compile(r"\./[\w/-]+\Z")
"""A program of the project itself, which is not a script by its name."""
_ACTIVATES = re.compile(r"(?:\./)?\.?venv/bin/activate")
_PLAIN_OPTIONS = {
    **dict.fromkeys(("rm", "rmdir", "unlink"), re.compile(r"-[rRfvdp]+|--recursive|--force|--verbose")),
    "curl": re.compile(r"-[sSfiIkLvg]+|--silent|--show-error|--fail|--include|--head|--location|--verbose"),
}
_PLAIN_OPERAND = re.compile(r"[\w.@:/?=&%+,-]+\Z")
_HOST = re.compile(r"https?://[\w.-]+(?::\d+)?/")
_PLAIN_VALUE = re.compile(r"[\w./:=@,+-]*\Z")
_LOADS = re.compile(
    r"LD_|DYLD_|GIT_|BASH_|ENV\Z|PATH\Z|IFS\Z|SHELL|\w*(?:PRELOAD|OPTIONS|OPTS|STARTUP|PAGER|EDITOR|_CMD|_COMMAND)"
)
"""Variables with which programs load or run something."""

_PATH_TOOLS = frozenset(("edit", "write", "read"))
"""Tools whose rules a rule for a command may need besides."""
_STARS = re.compile(r"(?<!\\)[*?\[]")


@dataclass(frozen=True, slots=True)
class Offer:
    """Rules that may be stored for one part of a call."""

    proposed: str
    choices: tuple[str, ...]
    """Every rule, narrowest first, including the proposed one."""


def offer_for_command(tool: str, text: str, workspace: str = "") -> Offer | None:
    """Return the rules for one simple command, or None if no rule should be stored.

    These are: the exact words; the words that name the program, its action and what it changes, with any harmless
    arguments; for a deletion and a question to a server, the folder and the host.
    """
    command = _simple_command(text)
    words = [word.value for word in takewhile(lambda word: word.is_fixed, command.words)] if command else []
    if command is None or not words or "\\" in "".join(words):
        return None
    is_whole = len(words) == len(command.words)
    before = "" if is_harmless_setting(command) else _assigned(command)
    if before is None:
        return None
    if starts := _beginning(words) if is_whole and not before else None:
        rules = tuple(f"{tool}({' '.join(start)})" for start in starts)
        return Offer(rules[-1], rules)
    count = _prefix_length(words, workspace)
    if count == 0 and not (_may_be_exact(words) or may_be_stored(words)):
        return None
    is_known = count > 0 and (_is_known(words[0]) or not may_be_stored(words) or count != 2)
    prefixes = [f"{tool}({before}{' '.join(words[:count])}:*)"] if count and (is_known or len(words) > 2) else []
    # A star in a rule would match any text.
    is_exact = is_whole and not any("*" in word or "\n" in word for word in words)
    exact = [f"{tool}({before}{' '.join(shlex.quote(word) for word in words)})"] if is_exact else []
    proposed = [*prefixes, *exact] if is_known else exact
    return Offer(proposed[0], (*exact, *prefixes)) if proposed else None


def offer_for_path(tool: str, path: str, workspace: str) -> Offer | None:
    """Return the rules for one path, absolute and without links, or None if no pattern can express it.

    These are: the path, its folder, and in the workspace the workspace. The folder is proposed, but not that of the
    workspace itself, of files that other programs obey, nor outside for changes, or for reads near the user's secrets.
    """
    if any(letter in "\n\r\\" for letter in path) or not path.isprintable() or path.endswith(" "):
        return None
    is_inside = path.startswith(workspace + "/")
    pattern = path.removeprefix(workspace) if is_inside else f"/{path}"
    pattern = escape_path(pattern)
    above = pattern.rpartition("/")[0]
    # `edit` covers `write`, too, so that the next change of either kind needs no question.
    wider = "edit" if tool == "write" else tool
    if is_inside and obeyed_name(path.removeprefix(workspace)) is None:
        choices = (pattern, f"{above}/**", "/**")
    elif tool == "read" and not is_inside and _is_plain_place(os.path.dirname(path)):
        choices = (pattern, f"{above}/**")
    else:
        choices = (pattern,)
    first, *others = dict.fromkeys(choices)
    rules = (f"{tool}({first})", *(f"{wider}({one})" for one in others))
    return Offer(rules[1] if len(rules) > (2 if is_inside else 1) else rules[0], rules)


def escape_path(path: str) -> str:
    """Return a pattern that matches one path."""
    return re.sub(r"([*?\[\]])", r"\\\1", path)


def _is_plain_place(folder: str) -> bool:
    """True if everything in a folder outside the workspace may be read because one file of it may."""
    home = os.path.realpath(os.path.expanduser("~"))
    return folder.count("/") > 1 and not is_within(home, folder) and obeyed_name(folder) is None


def may_be_prefix(words: Sequence[str]) -> bool:
    """True if a rule may allow these words with any arguments: proposed rules and typed ones pass the same check."""
    return 0 < _prefix_length(words, "") <= len(words)


def _prefix_length(words: Sequence[str], workspace: str) -> int:
    """Return the number of words that a rule with any arguments may begin with; 0 if there is none."""
    tool = _tool_at(words, workspace)
    if tool is None:
        return 0
    name, rest = canonical_name(words[tool]), words[tool:]
    if name in group("single_purpose") or (tool == 0 and _BUILT.match(words[0])):
        count = 1
    elif actions := words_by_program("offered_groups").get(":".join((name, *rest[1:2]))):
        count = 3 if actions & {*rest[2:3]} else 0
    elif name in _SCRIPTED and rest[1:2] in _RUN:
        count = 3 if rest[2:] and _is_plain(rest[2]) else 0
    elif name in words_by_program("offered_actions"):
        count = 2 if rest[1:] and rest[1] in words_by_program("offered_actions")[name] else 0
    else:
        count = 2 if not tool and _is_subcommand(words) else 0
    if not count:
        return 0
    # What the rule must spell out to cover the call belongs to it, and what keeps the call from changing something.
    row = matching_row(rest)
    told = {*words_to_spell(rest), *(row[0].changes.preventing if row else ())}
    return max([tool + count, *(at + 1 for at, word in enumerate(words) if at >= tool and word in told)])


def _tool_at(words: Sequence[str], workspace: str) -> int | None:
    """Return the index of the word that names the program of the project; None if no rule should be stored."""
    rest = without_interpreter(words)
    if len(rest) < len(words) and rest[0] in group("single_purpose") | {"ruff"}:
        return len(words) - len(rest) if words[len(words) - len(rest)] == rest[0] else None
    count = next((text.count(" ") + 1 for program, text in pairs("project_runners") if program == words[0]), 0)
    if count and [words[0], " ".join(words[:count])] in map(list, pairs("project_runners")):
        is_tool = words[count:] and (words[count] in group("single_purpose") | {"ruff"})
        is_there = (
            words[0] != "npx" or not workspace or os.path.lexists(f"{workspace}/node_modules/.bin/{words[count]}")
        )
        return count if is_tool and is_there and words[count] != "make" else None
    if _PROJECT_TOOL.match(words[0]):
        return 0 if canonical_name(words[0]) in group("single_purpose") | {"ruff"} else None
    if _BUILT.match(words[0]):
        return 0
    return 0 if may_be_stored(words) and _is_plain(words[0]) else None


def _is_subcommand(words: Sequence[str]) -> bool:
    """True if the second word of a program without a table looks like a harmless subcommand."""
    plain = len(words) > 1 and _is_plain(words[1]) and words[1][0].isalpha() and "." not in words[1]
    is_known = _is_known(words[0]) or wrapper(words[0]) is not None or writer(words[0]) is not None
    return plain and not is_known and words[1] not in group("runs_anything")


def _beginning(words: Sequence[str]) -> list[list[str]] | None:
    """Return the rules for a deletion of files of one folder, or for a question to one host, as words."""
    name, options = words[0], [word for word in words[1:] if word.startswith("-")]
    operands = [word for word in words[1:] if not word.startswith("-")]
    plain = all(map(_PLAIN_OPTIONS[name].fullmatch, options)) if name in _PLAIN_OPTIONS else False
    if not plain or not operands or words[1:] != [*options, *operands] or not all(map(_PLAIN_OPERAND.match, operands)):
        return None
    if name == "curl":
        host = _HOST.match(operands[0])
        return [[*words], [name, *options, f"{host[0]}*"]] if host and len(operands) == 1 else [[*words]]
    folders = {os.path.dirname(operand) for operand in operands}
    if any(os.path.isabs(one) or ".." in one.split("/") or one in (".", "./") for one in operands):
        return None
    folder = folders.pop()
    is_below = os.path.normpath(folder or ".") != "." and not folders
    return [[*words], *([[name, *options, f"{folder}/*"]] if is_below else [])]


def _assigned(command: SimpleCommand) -> str | None:
    """Return the assignments before a command as a rule spells them; None if a rule should not."""
    assigned = [(one.name, one.value) for one in command.assignments]
    if not all(
        value.is_fixed and _PLAIN_VALUE.match(value.value) and not _LOADS.match(name) for name, value in assigned
    ):
        return None
    return "".join(f"{name}={value.value} " for name, value in assigned)


def _simple_command(text: str) -> SimpleCommand | None:
    """Return the only command of a text, or None."""
    statement = read_script(text)
    while isinstance(statement, CommandSequence) and len(statement.parts) == 1:
        statement = statement.parts[0]
    return statement if isinstance(statement, SimpleCommand) and statement.words else None


def _may_be_exact(words: Sequence[str]) -> bool:
    """True if exactly these words may be stored, of a program for which others may not."""
    return words[0] in ("source", ".") and len(words) == 2 and _ACTIVATES.fullmatch(words[1]) is not None


def may_be_stored(words: Sequence[str]) -> bool:
    """True if a rule for a command with these first words may be stored."""
    name = words[0].rsplit("/", 1)[-1]
    runs = any(wrapper(*words[:count]) for count in (2, 3))
    return name not in (group("never_offered") | INTERPRETERS | SHELLS) and not runs and "\\" not in "".join(words)


def _is_known(name: str) -> bool:
    """True if a table says which words of a command any arguments may follow."""
    has_groups = any(key.startswith(f"{name}:") for key in words_by_program("offered_groups"))
    is_single = name in _SCRIPTED or name in group("single_purpose")
    return has_groups or is_single or name in words_by_program("offered_actions")


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
    if not may_be_stored(words) and not (pattern.is_prefix and may_be_prefix(words)):
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
