"""Suspicions about a command: it may run a command that a rule forbids, or change a protected path.

A suspicion only ever asks. It arises where a rule forbids a command that another command's words or input name, and
where a script names a protected path and one of its commands gets words that only the running shell knows. Such words
may be any string of the script: a value of a variable, a word of a loop, the output of a command.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tui_agent.git.repository import OWN_DIRECTORY, places_repository
from tui_agent.permissions.commands.analysis import is_mostly_read_only, runs_code_from_input
from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.builtins import DECLARATION_COMMANDS, declared_assignments
from tui_agent.permissions.commands.catalogue import INTERPRETERS, canonical_name, group, words_by_program, writer
from tui_agent.permissions.commands.invocation import pieces_of
from tui_agent.permissions.commands.version_control import (
    alias_expansions,
    forms_of,
    prints_own_directory,
    stored_settings,
)
from tui_agent.permissions.commands.wrappers import Wrapping
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.paths.protected_paths import may_mean_protected, protected_name
from tui_agent.permissions.rules.patterns import BORDER, CommandPattern, command_patterns
from tui_agent.permissions.rules.rule import Rule
from tui_agent.permissions.shell.expansion import Expander
from tui_agent.permissions.shell.syntax import (
    PIPE,
    UNKNOWN,
    ForEach,
    SimpleCommand,
    Statement,
    Unsupported,
    Word,
    names,
)

from .case_state import ExecutionContext
from .execution_contexts import Part
from .path_checks import CODE_WRITES

MAX_CANDIDATES = 2_000
"""Maximum number of words of one command compared with the rules; with more, the policy asks."""

MAX_FOLLOWING = 16
"""Maximum number of words of one candidate."""

_RUN_BY_OPTION = re.compile(
    r"-{1,2}(?:e|x|c|X|H|P|S|entrypoint|exec|cmd|command|extcmd|program|pager|editor|shell|filter|run|hook|script|toolexec|vettool|"
    r"html|on-[a-z-]+|pre|post)\Z"
)
"""Options whose values programs run."""
_MESSAGE_OPTION = re.compile(r"-[A-Za-z]*m\Z|--(?:message|title|body|description|notes|grep|author|trailer)\Z|-[tb]\Z")
_ATTACHED_MESSAGE = re.compile(r"(?:-m.|--(?:message|title|body|description|notes|grep|author|trailer)=)", re.DOTALL)
_RUNS_TESTS = re.compile(r"(?:run |run-script )?t(?:est\S*)?\Z")
"""Words of a package runner that runs tests; such options follow `--`."""
_CUTS = re.compile(r"[\s'\"`(),;:=<>|&\[\]{}!@$\\]+")
_SHORT = re.compile(r"-\w")
_PROGRAM_PATH = re.compile(r"/(?:usr/(?:local/)?)?s?bin/[^/]+\Z")
"""A program that may be copied or linked, and run under another name."""
_TEXT = re.compile(r"[\s;|&`$()<>]")
_ESCAPE = re.compile(r"\\(?:[abefnrtv]|x[0-9a-fA-F]{1,2}|[0-7]{1,4})")
_PRINTS_NOTHING = names("test [ [[ true false : cd pushd")
"""Commands whose literal words reach no other command."""
_SEARCHES = names("grep egrep fgrep rg")
_TAKES_OUT = re.compile(r"-[A-Za-z]*v|--invert-match\Z")
_LEAVES_OUT = re.compile(r"--exclude|--ignore|!\S*\Z")
_PRINTERS = names("echo printf")
_TAKES_OUT_NEXT = names("-not !")
_SETS_VARIABLES = names("read mapfile readarray printf getopts")
_NO_WORD = Word("", frozenset((0,)))
_CODE = re.compile(r"\$\(|`")
_EVALUATES = re.compile(
    r"(?:declare|typeset|local|export|readonly) -[a-zA-Z]*[nai]"
    r"|(?:test|\[\[?|printf) -v|.* -(?:eq|ne|lt|le|gt|ge)\Z|let |.*\w\[."
)
_QUOTING = re.compile(r"['\"\\]")
_ASSIGNS = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)\Z", re.DOTALL)


class Suspicions:
    """Suspicions about the commands of one script and of everything it runs."""

    def __init__(self, paths: PathJudge, tool: str, expander: Expander) -> None:
        self._path_lookup = paths.path_lookup
        self._expander = expander
        self._forbidden = forbidden(rule for rule in paths.rules.rules if rule.applies_to(tool))
        self.scripts: list[Sequence[Statement]] = []
        """Every statement of the scripts read so far."""
        self._checked = 0
        self._why: str | None = None

    def _strings(self, first: int = 0) -> Iterator[str]:
        """Yield the strings of the scripts, from the `first` on, that may become words, or input, of a command."""
        yield from self._joined(first)
        for text in (text for script in self.scripts[first:] for part in script for text in _strings_of(part)):
            yield text
            if "\\" in text:
                yield _ESCAPE.sub(" ", text)  # As `printf` and `echo -e` print it.

    def _joined(self, first: int = 0) -> Iterator[str]:
        """Yield the values that the scripts, from the `first` on, build with `+=`."""
        for script in self.scripts[first:]:
            held: dict[str, str] = {}
            texts = (text for part in reversed(script) for text in _strings_of(part))  # The last part comes first.
            for name, is_added, text in (found.groups() for found in map(_ASSIGNS.match, texts) if found):
                held[name] = (held.get(name, "") if is_added else "") + text
                yield held[name]

    def about(self, part: Part) -> Iterator[str]:
        """Return reasons to ask about a command that is not known to be read-only."""
        if named := self._named(part):
            yield named
        for setting in {one for found in part.contexts if found.words for one in stored_settings(found.words)}:
            yield f"it changes {setting} of git, which may start programs or replace files"
        if self._is_open(part) and (why := self._protected_string()):
            yield f"it is unclear which files it changes, and the script names a protected path: {why}"

    def _named(self, part: Part) -> str | None:
        """Return why a command may run one that a rule forbids: its words, its input or its variables name it."""
        if not self._forbidden:
            return None
        command, wrapping, given = part.command, part.wrapping, part.contexts
        texts = [assignment.value.value for assignment in command.assignments]
        known = {tuple(one.words) for one in given if one.words} or {(command.name,)}
        if _is_judged(wrapping) and command.name not in group("named_by_settings"):
            known = {tuple(word.value for word in wrapping.own) if wrapping and wrapping.own else (command.name,)}
        else:
            texts += [code for one in given for code in one.invocation.code]
            texts += self._input_of(part)
        if part.runs_written:
            texts += self._strings()
        if any(UNKNOWN in word for words in known for word in words):
            texts += self._joined()
        if any(PIPE in word.value for word in (*command.words, *(one.value for one in command.assignments))):
            texts += self._strings()
        for words in known:
            if found := find_indirect_command(words, texts, self._forbidden):
                return f"it may run {found[0]}, which the rule {found[1].shown} covers"
        return None

    def programs_fed_to(self, part: Part) -> Iterator[str]:
        """Yield the texts of a program that other commands print and a command certainly runs."""
        words = [word.value for word in part.command.words]
        is_fed = _gets_output(part) and words and not _is_judged(part.wrapping) and runs_code_from_input(words)
        if is_fed or part.runs_written:
            yield from self._strings()

    def _input_of(self, part: Part) -> list[str]:
        """Return texts that a command may read as a program: its here-document and the output of other commands."""
        if not reads_program_from_input([word.value for word in part.command.words]):
            return []
        return [part.command.heredoc or "", *(self._strings() if _gets_output(part) else ())]

    def _is_open(self, part: Part) -> bool:
        """True if only the running shell knows some of a command's arguments, or if its input may decide its effect."""
        command, step, wrapping = part.command, part.task.step, part.wrapping
        if any(map(_has_unknowns, part.contexts)):
            return True
        targets = (
            target
            for one in part.contexts
            for redirect in command.redirects
            for target in self._expander.expand(redirect.target, one.directory, step.bindings)
        )
        if part.runs_written or (wrapping and wrapping.hidden) or any(UNKNOWN in target for target in targets):
            return True
        if not _gets_output(part) or _is_judged(wrapping):
            return False
        return reads_program_from_input([word.value for word in command.words]) or _may_write(part)

    def _protected_string(self) -> str | None:
        """Return why a string of the scripts read so far names a protected path, or None."""
        if self._why is None and self._checked < len(self.scripts):
            pieces = dict.fromkeys(piece for text in self._strings(self._checked) for piece in pieces_of(text))
            self._why = next((why for piece in pieces if (why := self._why_untouchable(piece))), None)
            self._checked = len(self.scripts)
        return self._why

    def _why_untouchable(self, piece: str) -> str | None:
        if why := protected_name(piece) or self._path_lookup.may_be_private(piece.split("/")):
            return why
        if any(may_mean_protected(name) for name in piece.split("/")):
            return f"{piece} may match a protected path"
        return self._path_lookup.look(piece).private if piece.startswith(("/", "~")) and is_known(piece) else None


def _is_judged(wrapping: Wrapping | None) -> bool:
    """True if everything that a command runs is judged separately."""
    return wrapping is not None and bool(wrapping.inner_commands or wrapping.scripts) and not wrapping.hidden


def _gets_output(part: Part) -> bool:
    """True if a command gets the output of others: as its input, or as a file."""
    return part.is_fed or any(PIPE in word.value for word in part.command.words)


def _may_write(part: Part) -> bool:
    """True if a program in a command's words may write files, which its input may name."""
    codes = (code for found in part.contexts for code in found.invocation.code)
    return canonical_name(part.command.name) in INTERPRETERS and any(map(CODE_WRITES.search, codes))


def _has_unknowns(found: ExecutionContext) -> bool:
    """True if only the running shell knows the command's name, its directory or its targets."""
    if not found.words or found.directory is None or UNKNOWN in found.words[0]:
        return True
    one = found.invocation
    touched = (*(write.path for write in (*one.writes, *one.mentions)), *one.code, one.runs_in or "")
    return any(UNKNOWN in text or PIPE in text for text in touched)


def _strings_of(part: Statement) -> Iterator[str]:
    """Yield the strings of one part of a script that may become words, or input, of one of its commands."""
    match part:
        case Unsupported():
            yield _QUOTING.sub("", part.text)
        case ForEach():
            yield from (word.value for word in part.words or ())
        case SimpleCommand():
            yield from _strings_of_command(part)
        case _:
            pass


def _strings_of_command(command: SimpleCommand) -> Iterator[str]:
    for assignment in command.assignments:
        yield assignment.value.value
        yield _QUOTING.sub("", assignment.text)
    # The default of a variable appears only in the word as written.
    yield from (_QUOTING.sub("", word.text) for word in command.words if "${" in word.text)
    yield from () if command.heredoc is None else (command.heredoc,)
    values = [word.value for word in command.words]
    name = command.name.rpartition("/")[2]
    sets_repository = any(places_repository(variable.name) for word in command.words for variable in word.variables)
    if sets_repository or prints_own_directory(name, values[1:]):
        yield OWN_DIRECTORY
    if name in _PRINTS_NOTHING:
        yield from (word.value for word in command.words[1:] if not word.is_fixed)
    elif not (name in _SEARCHES and any(map(_TAKES_OUT.match, values))):
        yield from _included_words(values)


def _included_words(values: Sequence[str]) -> Iterator[str]:
    """Yield a command's arguments without those that it excludes."""
    before, above = "", ""
    for at, value in enumerate(values[1:], start=1):
        # Without an `-o` after `-prune`, the next action applies to the pruned name.
        is_pruned = values[at + 1 : at + 2] == ["-prune"] and values[at + 2 : at + 3] in (["-o"], ["-or"])
        is_left_out = (_LEAVES_OUT.match(value) and values[0] not in _PRINTERS) or before.startswith("--exclude")
        if not (is_left_out or is_pruned or above in _TAKES_OUT_NEXT):
            yield value
        before, above = value, before


def assigned_names(script: Iterable[Statement]) -> Iterator[tuple[str, Word | None]]:
    """Yield the variables that a script sets, with each value; None for a value that is not literal."""
    for part in script:
        if isinstance(part, ForEach):
            yield from ((part.variable, word if word.is_literal else None) for word in part.words or (_NO_WORD,))
        elif isinstance(part, SimpleCommand):
            declared = (declared_assignments(part) or ()) if part.name in DECLARATION_COMMANDS else ()
            if not declared and not part.assignments and part.name not in _SETS_VARIABLES:
                continue
            for one in (*(part.assignments if not part.words else ()), *(one for one in declared if "=" in one.text)):
                is_plain = one.items is None and not one.text.startswith(f"{one.name}+") and one.value.is_literal
                yield one.name, one.value if is_plain else None
            if part.name in _SETS_VARIABLES:
                yield from ((word.value, None) for word in part.words[1:] if word.value.isidentifier())


def may_evaluate_strings(script: Sequence[Statement]) -> bool:
    """True if a script has text with a `$(…)` in quotes, and a construct that may run it.

    Arithmetic, subscripts and attributes of variables run the commands in the values of variables.
    """
    commands = [part for part in script if isinstance(part, SimpleCommand)]
    assigned = [one for command in commands for one in command.assignments]
    values = [word.value for command in commands for word in command.words]
    texts = [one.value.value for one in assigned] + [item.value for one in assigned for item in one.items or ()]
    texts += values + [command.heredoc or "" for command in commands]
    texts += [word.value for part in script if isinstance(part, ForEach) for word in part.words or ()]
    if not any(map(_CODE.search, texts)):
        return False
    return any(isinstance(part, Unsupported) and not part.unreadable for part in script) or any(
        map(_evaluates_strings, commands)
    )


def declares_array_again(script: Iterable[Statement]) -> bool:
    """True if a script declares an array a second time: bash expands a new value such as `'($(ls))'` once more."""
    commands = [part for part in script if isinstance(part, SimpleCommand)]
    arrays = {one.name for command in commands for one in command.assignments if one.items is not None}
    return bool(arrays) and any(
        one.name in arrays for command in commands for one in declared_assignments(command) or () if "=" in one.text
    )


def _evaluates_strings(command: SimpleCommand) -> bool:
    values = [word.value for word in command.words]
    place = next((at for at, value in enumerate(values) if value in group("takes_strings")), len(values))
    return any(_EVALUATES.match(f"{values[place]} {value}") for value in values[place:])


# --- commands that words name ----------------------------------------------------------------------------------------

# No table lists every program that runs another. So every later word of an unknown program may name a command; of a
# program that does not run its operands, only words in options or quotes.


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
    if runs_code_from_input(words) or name in INTERPRETERS:
        return runs_code_from_input(words)
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
    choosing, behind = _choosing_tests(name, words)
    runs = False
    for at in range(1, len(words)):
        # The name of the command itself is not an option.
        before, word = words[at - 1] if at > 1 else "", words[at]
        says = _MESSAGE_OPTION.match(before) or _ATTACHED_MESSAGE.match(word)
        if (before in choosing and at > behind) or (says and name in group("with_messages")):
            continue
        if not takes_names or runs or _RUN_BY_OPTION.match(before):
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
