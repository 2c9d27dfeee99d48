"""Commands that another command's words name and may run, without a table that says so.

Rules that forbid a command must hold behind every program that runs another, and no table lists them all. So every
later word of an unknown program may name a command; of a program that does not run its operands, only words in options
or quotes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tui_agent.permissions.rules.patterns import BORDER, CommandPattern, command_patterns
from tui_agent.permissions.rules.rule import Rule
from tui_agent.permissions.shell.syntax import names

from .analysis import is_mostly_read_only
from .catalogue import INTERPRETERS, canonical_name, group, words_by_program, writer
from .version_control import alias_expansions, forms_of

MAX_CANDIDATES = 2_000
"""Maximum number of words of one command compared with the rules; with more, the policy asks."""

MAX_FOLLOWING = 16
"""Maximum number of words of one candidate."""

_RUN_BY_OPTION = re.compile(
    r"-{1,2}(?:e|x|c|entrypoint|exec|cmd|command|extcmd|program|pager|editor|shell|filter|run|hook|script|toolexec|vettool|"
    r"html|on-[a-z-]+|pre|post)\Z"
)
"""Options whose values programs run."""
_RUN_BY_LETTER = {"fd": "X", "fdfind": "X", "man": "H P", "scp": "S", "sftp": "S"}
"""More such options, of single programs."""
_MESSAGE_OPTION = re.compile(r"-[A-Za-z]*m\Z|--(?:message|title|body|description|notes|grep|author|trailer)\Z|-[tb]\Z")
_ATTACHED_MESSAGE = re.compile(r"(?:-m.|--(?:message|title|body|description|notes|grep|author|trailer)=)", re.DOTALL)
_RUNS_TESTS = re.compile(r"(?:run |run-script )?t(?:est\S*)?\Z")
"""Words of a package runner that runs tests; such options follow `--`."""
_CUTS = re.compile(r"[\s'\"`(),;:=<>|&\[\]{}!@$\\]+")
_SHORT = re.compile(r"-\w")
_PROGRAM_PATH = re.compile(r"/(?:usr/(?:local/)?)?s?bin/[^/]+\Z")
"""A program that may be copied or linked, and run under another name."""
_TEXT = re.compile(r"[\s;|&`$()<>]")


@dataclass(frozen=True, slots=True)
class Forbidden:
    """A command that a rule forbids."""

    pattern: CommandPattern
    """Pattern of the rule, as a prefix: further words may belong to the outer command."""
    rule: Rule


def forbidden(rules: Iterable[Rule]) -> tuple[Forbidden, ...]:
    """Return the commands that rules deny or ask about.

    Rules with a leading star are left out: every command is compared with them anyway.
    """
    return tuple(
        Forbidden(replace(pattern, is_prefix=True), rule)
        for rule in rules
        if rule.verdict != "allow" and rule.pattern is not None
        for pattern in command_patterns(rule.pattern)
        if pattern.pieces[0]
    )


def find_indirect_command(
    words: Sequence[str], texts: Iterable[str], known: Sequence[Forbidden]
) -> tuple[str, Rule] | None:
    """Return a forbidden command that another command's words or further input name, with the rule, or None."""
    starts = tuple({one.pattern.pieces[0].partition(BORDER)[0] for one in known})
    for count, candidate in enumerate(_candidates(words, texts)):
        if count > MAX_CANDIDATES:
            return f"one of more than {MAX_CANDIDATES} words", known[0].rule
        first = candidate[0].rstrip("/").rsplit("/", 1)[-1]
        if not first.startswith(starts):
            continue  # Cheap test first: most words cannot be a forbidden command.
        words_from = (first, *candidate[1:])
        joined = [BORDER.join(form) for form in (words_from, *forms_of(words_from))]
        for one in known:
            if any(one.pattern.match(text) for text in joined):
                return first, one.rule
    return None


def reads_program_from_input(words: Sequence[str]) -> bool:
    """True if a command's input may be a program or decide what the command does."""
    name = canonical_name(words[0])
    if name in INTERPRETERS:
        return len(words) == 1 or words[1] in ("-", "-i")  # Otherwise the program is in its arguments.
    if name in group("program_input"):
        return True
    return name not in group("named_by_operands") and writer(name) is None and not is_mostly_read_only(name)


def _candidates(words: Sequence[str], texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield every text that may be a command, with the words that follow it."""
    yield from _behind_options(words)
    for at, is_bare in _eligible(words):
        pieces = _pieces(words[at])
        # A word of its own is followed by the next words, a word inside a longer text by the rest of that text.
        following = list(words[at + 1 : at + MAX_FOLLOWING])
        if len(pieces) == 1 and not is_bare and _CUTS.search(words[at]) is None:
            yield [*pieces, *following]
            continue
        for place in range(len(pieces)):
            yield [*pieces[place:], *following]
    for text in texts:
        pieces = _pieces(text)
        for place in range(len(pieces)):
            yield pieces[place : place + MAX_FOLLOWING]


def _behind_options(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the command with the words after its first options, and the expansions of aliases."""
    name = canonical_name(words[0])
    for text, *following in alias_expansions(words):
        yield [name, *(_pieces(text)[1:] or following[: MAX_FOLLOWING - 1])]
    if name not in group("version_control") and words[1:] and words[1].startswith(("-", "+")):
        yield from ([name, *words[at : at + MAX_FOLLOWING]] for at in range(2, min(len(words), MAX_FOLLOWING)))


def _pieces(text: str) -> list[str]:
    """Return the words inside a word; for an option joined with its value, the value."""
    found: list[str] = []
    for piece in _CUTS.split(text):
        if piece and _SHORT.match(piece):
            found.append(piece[2:] if len(piece) > 2 else piece)
            if _TEXT.search(text):
                found.extend(piece[at:] for at in range(3, min(len(piece), 6)))
        elif piece:
            found.append(piece)
    return found


def _eligible(words: Sequence[str]) -> Iterator[tuple[int, bool]]:
    """Yield the indices of words that may name a command, with True if the word counts as written."""
    name = canonical_name(words[0])
    if name.startswith("python") and len(words) > 2 and words[1] == "-m":
        yield from ((at + 2, is_bare) for at, is_bare in _eligible(words[2:]))
        return
    is_writer = writer(name) is not None and name not in INTERPRETERS
    takes_names = name in group("named_by_operands") or is_writer or is_mostly_read_only(name)
    runs = False
    letters = _RUN_BY_LETTER.get(name, "")
    choosing, behind = _choosing_tests(name, words)
    for at in range(1, len(words)):
        before, word = words[at - 1], words[at]
        if name in group("with_messages") and (
            (at > 1 and _MESSAGE_OPTION.match(before)) or _ATTACHED_MESSAGE.match(word)
        ):
            continue
        if at > 1 and before in choosing and at > behind:
            continue
        if not takes_names or runs or (at > 1 and (_RUN_BY_OPTION.match(before) or before[1:] in letters.split())):
            yield at, True
        elif "=" in word or _PROGRAM_PATH.match(word) or _TEXT.search(word) or _SHORT.match(word):
            yield at, False
        runs = runs or word in words_by_program("runs_behind").get(name, ())


def _choosing_tests(name: str, words: Sequence[str]) -> tuple[frozenset[str], int]:
    """Return the options that select tests by name, and the index of the word after which they count."""
    if name in ("npm", "pnpm", "yarn") and "--" in words:
        behind = words.index("--")
        if _RUNS_TESTS.match(" ".join(words[1:behind])):
            return names("-t --testNamePattern -g --grep"), behind
    return words_by_program("selects_tests").get(name, frozenset()), 0
