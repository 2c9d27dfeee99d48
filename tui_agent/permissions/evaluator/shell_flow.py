"""One walk over a script: where each command may run, what feeds it, and the values of the script's variables.

Each command is paired with every directory it may run in: after `cd sub && …` it is `sub`, after `cd sub; …` it is
either. If a directory is not certain, one of them is None, and a relative path may then lead anywhere.

A variable has a value if it has certainly been set, and if the whole script sets it at one place only, or to literal
texts or numbers only. If a part may set any variable, none has a value.
"""

import os
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from tui_agent.git.repository import repository_roots
from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.builtins import (
    declared_assignments,
    is_script_variable,
    read_names,
    sets_switches_only,
)
from tui_agent.permissions.commands.catalogue import facts_of, group
from tui_agent.permissions.commands.version_control import prints_revisions, prints_top
from tui_agent.permissions.paths.path_resolution import resolve
from tui_agent.permissions.shell.expansion import NUMBER, OPEN, REVISION, Bindings, Expander, Value
from tui_agent.permissions.shell.syntax import (
    SUM,
    UNKNOWN,
    VARIABLE,
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    SimpleCommand,
    Statement,
    Subshell,
    Unsupported,
    Variable,
    Word,
    contents_of,
    names,
    walk_statements,
)
from tui_agent.permissions.shell.syntax import Sequence as Statements

from .listings import is_quiet, listed_names

PossibleDirectories = tuple[str | None, ...]
"""Directories that a statement may run in; None for an unknown one."""

MAX_POSSIBLE_DIRECTORIES = 8
"""Maximum number of directories for one command; with more, one is unknown."""
MAX_CD_COMMANDS = 25
"""Maximum number of directory changes in one script."""
MAX_CALLS = 20
"""Maximum number of calls of a script's own functions that are judged one by one."""

_ANY = Word(UNKNOWN)
_ANY_NUMBER = Word(VARIABLE, variables=(Variable(SUM, quoted=False),))
_GLOB = frozenset("*?[")
_FUNCTION = re.compile(r"[a-z_][a-z0-9_]*\Z", re.ASCII)
_PREFIXES = names("time -p -- command builtin")
_MOVERS = names("eval source . trap")
"""Commands after which the shell's directory is unknown."""
_CHANGE_DIRECTORY = names("cd pushd popd")
_SHIFTERS = names("shift set getopts eval source .")
_SETTERS = names(
    "mapfile readarray getopts let declare typeset local export readonly eval source . unset trap alias enable exec"
)
"""Commands that may change any variable."""
_SETS_PLACE = re.compile(
    r"(?s)(?:\w+=|-v)?(?!CDPATH=\Z|IFS=(?:[^\w./:=@%+,\ud800-\udfff-]|\\[nt])*\Z)(?:HOME|PWD|OLDPWD|CDPATH|IFS)(?:\+?=.*|\[.*)?\Z"
)
"""A word that may set one of these variables to a value that changes anything, also by a reference to it."""

_NUMBER = re.compile(r"-?\d{1,18}\Z|\{\d{1,9}\.\.\d{1,9}\}\Z", re.ASCII)
_PRINTS_NUMBER = re.compile(r"(?:date\0\+%(?:s|Y|s%N)|nproc|id\0-u|seq(?:\0-?\d{1,18})*)\Z", re.ASCII)
_COUNTS_INPUT = re.compile(r"wc\0(?:-[lcwm]|--lines|--bytes|--words|--chars)\Z")
_LINE_ENDS = {"": "\n", "-r": "\n", "-r -d ": "\0", "-rd ": "\0", "-d ": "\0"}
"""Ends of a line for `read`, by its options."""
_IGNORE_INPUT = names("echo printf basename dirname test [ [[ : true false continue break exit return cd pwd date read")
"""Commands that read nothing from a pipe, or only whole lines."""
_READS_LAST = re.compile(
    r"(?:cat|wc|stat|file|ls|md5sum|sha256sum)(?:\0.*)?|(?:head|tail|grep)\0(?:.*\0)?(?:-\d+|(?!-)[^\0]*)|head|tail",
    re.DOTALL,
)
"""Words after which a command reads the file that its last word names, and not its input."""
_INPUT = re.compile(r"-\Z|/dev/stdin\Z|.*/fd/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One part of a script with its known circumstances."""

    command: SimpleCommand | Unsupported | Definition | ForEach
    places: PossibleDirectories
    fed_by: Statement | None = None
    """Statement whose output it reads, in a pipeline."""
    bindings: Bindings = field(default_factory=dict[str, Value])
    is_fed: bool = False
    """True if its input is the output of earlier parts of a pipeline, known or not."""
    operator: str = ""
    """Its connection to the step before, as in `DecisionPart`; only for display."""


def script_steps(
    statement: Statement, places: PossibleDirectories, expander: Expander, operator: str = ""
) -> tuple[ScriptStep, ...]:
    """Return every part that may run, in the order of the text; substitutions precede the command they are in."""
    only = contents_of(statement)
    if isinstance(only, SimpleCommand) and not only.assignments and not only.nested:
        targets = (redirect.target for redirect in only.redirects)
        if not any(word.variables for word in (*only.words, *targets)):
            # Most commands: neither variables nor other commands decide about its words, so no walk is needed.
            expander.sets_places |= _sets_places((only,))
            return (ScriptStep(only, places, operator=operator),)
    flow = _Flow(statement, expander, operator)
    flow.run(statement, places, flow.opened)
    return tuple(flow.steps)


def widens_patterns(everything: Iterable[Statement]) -> bool:
    """True if a script may make patterns match hidden names."""
    return any(isinstance(part, SimpleCommand) and _own_words(part)[:1] == ["shopt"] for part in everything)


@dataclass(frozen=True, slots=True)
class _After:
    """The shell after a statement: its possible directories, and the values of variables."""

    success: PossibleDirectories
    failure: PossibleDirectories
    values: Bindings


class _Flow:
    """One walk over one script."""

    def __init__(self, statement: Statement, expander: Expander, operator: str) -> None:
        self.steps: list[ScriptStep] = []
        self._expander = expander
        self._operator = operator
        """Operator before the next step."""
        self._is_fed = False
        self._visited: dict[str | None, None] = {}
        """Every directory in which something has run so far."""
        self._moves = 0
        """Number of directory changes so far."""
        everything = list(walk_statements(statement))
        commands = _commands(everything)
        expander.sets_places |= _sets_places(everything)
        self._inlined = _inlined_functions(everything)
        self._functions = {part.name for part in everything if isinstance(part, Definition)} - self._inlined.keys()
        """Functions that may change anything."""
        words = ([word.value for word in command.words] for command in commands)
        self._shifts = any(not _SHIFTERS.isdisjoint(one) and not sets_switches_only(one) for one in words)
        """True if a part may change the arguments of a function."""
        # Rough commands of unreadable text may not run in this order.
        is_readable = not any(isinstance(part, Unsupported) and part.unreadable for part in everything)
        self._max_moves = MAX_CD_COMMANDS if is_readable else 0
        self._variables = _Variables(everything, expander)
        self.opened: Bindings = self._variables.opened

    # --- the walk -----------------------------------------------------------------------------------------------------

    def run(
        self, statement: Statement, places: PossibleDirectories, now: Bindings, fed_by: Statement | None = None
    ) -> _After:
        """Collect every step of a statement that starts in one of `places`, with the values `now`."""
        match statement:
            case SimpleCommand():
                return self._command(statement, places, now, fed_by)
            case Unsupported():
                if statement.arithmetic and not self._variables.is_open:
                    return _After(places, places, {**now, **dict.fromkeys(statement.arithmetic.sets, NUMBER)})
                self._note(statement, places, now, fed_by)
            case Definition():
                # The body of an inlined function is judged at each call. Any other function runs where it is called:
                # in an unknown directory, with unknown values.
                if statement.name not in self._inlined:
                    self._note(statement, places, now)
                    self.run(statement.body, (None,), self.opened)
            case Statements():
                after = _After(places, places, now)
                # A redirection behind a compound command is a command without words after it.
                if any(_replaces_input(part) and not part.words for part in _commands(statement.parts)):
                    fed_by = None
                for part in statement.parts:
                    after = self.run(part, _either(after.success, after.failure), after.values, fed_by)
                    self._operator = ";"
                return after
            case Conditional():
                return self._conditional(statement, places, now, fed_by)
            case Pipeline():
                was_fed = self._is_fed
                for number, part in enumerate(statement.parts):
                    self._is_fed = was_fed or number > 0
                    self._operator = "|" if number else self._operator
                    before = statement.parts[:number]
                    self.run(part, places, now, Pipeline(before) if number > 1 else (*before, fed_by)[0])
                self._is_fed = was_fed
            case Subshell():
                self.run(statement.body, places, now, fed_by)
            case Branches():
                return self._branches(statement, places, now, fed_by)
            case ForEach():
                now = self._run_nested(statement.nested, places, now)
                self._note(statement, places, now)
                inside = self._variables.in_loop(statement, places, now)
                after = self._branches(Branches((statement.body,), repeats=True), places, inside)
                return replace(after, values=now)
        # A pipeline or a subshell sets no variable of the outer shell.
        return _After(places, places, now)

    def _note(
        self,
        command: SimpleCommand | Unsupported | Definition | ForEach,
        places: PossibleDirectories,
        now: Bindings,
        fed_by: Statement | None = None,
    ) -> None:
        self.steps.append(ScriptStep(command, places, fed_by, now, self._is_fed, self._operator))

    def _run_nested(self, nested: tuple[Statement, ...], places: PossibleDirectories, now: Bindings) -> Bindings:
        """Walk the statements inside words; return the values with their output."""
        before = self._operator
        for part in nested:
            self._operator = "$()"
            now = self.run(part, places, now).values
            if isinstance(part, Subshell) and part.name:
                now = self._variables.with_value(part.name, self._variables.output(part, places, now), now)
        self._operator = before
        return now

    def _conditional(
        self, statement: Conditional, places: PossibleDirectories, now: Bindings, fed_by: Statement | None
    ) -> _After:
        """Walk a list of `&&` and `||`.

        After `&&`, the earlier parts have set their variables. After `||`, only the first part certainly has.
        """
        after = self.run(statement.first, places, now, fed_by)
        settled = after.values
        for operator, part in statement.rest:
            self._operator = operator
            if operator == "&&":
                right = self.run(part, after.success, after.values)
                after = replace(right, failure=_either(after.failure, right.failure))
            else:
                right = self.run(part, after.failure, settled)
                after = _After(_either(after.success, right.success), right.failure, settled)
        return replace(after, values=settled)

    def _branches(
        self, statement: Branches, places: PossibleDirectories, now: Bindings, fed_by: Statement | None = None
    ) -> _After:
        outer = self._variables.lines
        if fed_by is not None:
            self._variables.lines = self._variables.lines_read(statement, places, fed_by, now)
        # An iteration that changes directory may start the next one anywhere.
        current = _either(places, (None,)) if statement.repeats and self._may_move(statement) else places
        for part in statement.parts:
            after = self.run(part, current, now)
            current = _either(current, _either(after.success, after.failure))
        self._variables.lines = outer
        return _After(current, current, now)

    def _command(
        self, command: SimpleCommand, places: PossibleDirectories, now: Bindings, fed_by: Statement | None
    ) -> _After:
        now = self._run_nested(command.nested, places, now)
        self._visited |= dict.fromkeys(places)
        if body := self._inlined.get(command.name):
            if command.redirects:
                self._note(replace(command, words=(), nested=()), places, now)
            arguments = self._arguments(command, places, now)
            after = self.run(body, places, {**now, **arguments}, None if _replaces_input(command) else fed_by)
            return replace(after, values={name: held for name, held in after.values.items() if name not in arguments})
        self._note(command, places, now, None if _replaces_input(command) else fed_by)
        now = self._variables.after(command, places, now)
        name, *words = _own_words(command) or [""]
        if name in _CHANGE_DIRECTORY:
            success = self._moved(command.words[len(command.words) - len(words) :], [name, *words], places, now)
            return _After(success, places, now)
        if command.words and (name in _MOVERS or name in self._functions or not command.words[0].is_fixed):
            places = _either(places, (None,))
        return _After(places, places, now)

    # --- functions ----------------------------------------------------------------------------------------------------

    def _arguments(self, command: SimpleCommand, places: PossibleDirectories, now: Bindings) -> Bindings:
        """Return the values of `$1` and the like in a function that a command calls, as far as they are certain."""
        words = command.words[1:]
        lists = {name for name, held in now.items() if held.kind == "words"}
        if self._shifts or any(word.live or any(one.name in lists for one in word.variables) for word in words):
            return {}
        expand = self._expander.expand
        values = [tuple(dict.fromkeys(one for place in places for one in expand(word, place, now))) for word in words]
        if not all(map(is_known, (one for texts in values for one in texts))):
            return {}
        everything = {"@": Value("words", tuple(one for texts in values for one in texts))}
        return everything | {str(at): Value("text", texts) for at, texts in enumerate(values[:9], start=1)}

    # --- directories --------------------------------------------------------------------------------------------------

    def _may_move(self, statement: Statement) -> bool:
        """True if a statement may change the directory of its own shell."""
        return any(map(self._moves_shell, walk_statements(statement, is_same_shell=True)))

    def _moves_shell(self, part: Statement) -> bool:
        if not isinstance(part, SimpleCommand) or not part.words:
            return False
        body = self._inlined.get(part.name)
        values = {word.value for word in part.words}
        moves = not part.words[0].is_fixed or not values.isdisjoint(_MOVERS | _CHANGE_DIRECTORY | self._functions)
        return moves or (body is not None and self._may_move(body))

    def _moved(
        self, targets: Sequence[Word], values: list[str], places: PossibleDirectories, now: Bindings
    ) -> PossibleDirectories:
        """Return the directories after a `cd`, `pushd` or `popd`, with its words, from each place."""
        if self._expander.sets_places:
            return (None,)
        if values[0] == "popd" or (values[1:] in ([], ["-"]) and values != ["cd"]):
            # Back to one of the earlier directories, if the script has changed directory.
            return _either(tuple(self._visited), ()) if self._moves else (None,)
        self._moves += 1
        if self._moves > self._max_moves:
            return (None,)
        moved: list[str | None] = []
        for place in places:
            found = [self._expander.expand(word, place, now) for word in targets]
            # `cd` takes one of the names that a pattern matches.
            choices = [[one] for one in found[0]] if len(found) == 1 else [[one for words in found for one in words]]
            moved += [after for choice in choices for after in _targets_of_cd(choice, place)]
        return _either(tuple(moved), ())


class _Variables:
    """Values of the variables of one script, and of the words that its substitutions become."""

    def __init__(self, everything: Sequence[Statement], expander: Expander) -> None:
        self._expander = expander
        self._given: defaultdict[str, list[tuple[Word, ...]]] = defaultdict(list)
        """Words that the script gives to each variable: one tuple for each assignment and each loop."""
        self.lines: Bindings = {}
        """Values of variables that the loop being walked reads line by line from a known list."""
        commands = _commands(everything)
        computed = [part.arithmetic for part in everything if isinstance(part, Unsupported)]
        assigned = [pair for command in commands for pair in _assigned_words(command)]
        assigned += [(name, _ANY_NUMBER) for one in computed if one for name in one.sets]
        looped = [(part.variable, part.words or (_ANY,)) for part in everything if isinstance(part, ForEach)]
        for name, words in (*looped, *((name, (word,)) for name, word in assigned)):
            self._given[name].append(words)
        self._loops = {name for name, _ in looped}
        self._literals = {
            name: _text(word.value for [word] in given)
            for name, given in self._given.items()
            if name not in self._loops and all(word.is_literal for [word] in given)
        }
        """Values of variables that only get literal texts."""
        outputs = {part.name: part for part in everything if isinstance(part, Subshell) and part.name}
        self._numbers = {
            name
            for name, given in self._given.items()
            if is_script_variable(name) and all(_is_number(word, outputs) for words in given for word in words)
        }
        patterns = {name for name, word in assigned if not word.is_fixed or not _GLOB.isdisjoint(word.value)}
        self.opened: Bindings = dict.fromkeys(patterns - self._numbers, OPEN)
        """Variables that may get any value; the walk begins with them."""
        # Arithmetic evaluates anything but numbers, which could set anything.
        self.is_open = any(map(_may_set_any, commands)) or not all(
            one and one.reads <= self._numbers for one in computed
        )
        """True if a part may set any variable, so that none has a value."""

    def _is_own(self, name: str, *, is_only: bool = False) -> bool:
        """True if only the script sets a variable, at one place alone if `is_only`."""
        return not self.is_open and is_script_variable(name) and (not is_only or len(self._given[name]) == 1)

    def with_value(self, name: str, value: Value | None, now: Bindings) -> Bindings:
        """Return the values after a variable has got one; None for an unknown one."""
        values = {other: held for other, held in now.items() if other not in (name, f"{name}[@]")}
        value = value or self.opened.get(name)
        return values if value is None else {**values, name: value}

    def after(self, command: SimpleCommand, places: PossibleDirectories, now: Bindings) -> Bindings:
        """Return the values after a command has set its variables."""
        for name, word in _assigned_words(command):
            now = self.with_value(name, self.lines.get(name) or self._assigned(name, word, places, now), now)
        for one in command.assignments:
            if one.items is not None and self._is_own(one.name, is_only=True):
                now = {**now, f"{one.name}[@]": Value("words", tuple(item.value for item in one.items))}
        return now

    def _assigned(self, name: str, word: Word, places: PossibleDirectories, now: Bindings) -> Value | None:
        given = self._given[name]
        if not self._is_own(name) or name in self._loops:
            return None
        if name in self._literals:
            return self._literals[name]
        if name in self._numbers:
            return NUMBER
        if len(given) > 1:
            return None  # Another assignment may have run last.
        if (held := _held(word, now)).kind not in ("text", "open"):
            return held
        return _text(text for place in places for text in self._expander.assigned(word, place, now))

    def in_loop(self, loop: ForEach, places: PossibleDirectories, now: Bindings) -> Bindings:
        """Return the values in the body of a loop, whose variable has any of its words."""
        words, value = loop.words or (), None
        if words and self._is_own(loop.variable, is_only=True):
            held = _held(words[0], now) if len(words) == 1 else OPEN
            expand = self._expander.expand
            texts = (one for place in places for word in words for one in expand(word, place, now))
            value = held if held in (NUMBER, REVISION) else _text(texts)
        return self.with_value(loop.variable, value, now)

    def lines_read(
        self, loop: Branches, places: PossibleDirectories, fed_by: Statement, now: Bindings
    ) -> dict[str, Value]:
        """Return the value of the variable that `fed_by | while read -r name; do …` reads line by line."""
        parts = list(walk_statements(loop))
        # Only the first part of a pipeline reads the loop's input.
        piped = [inner for part in parts if isinstance(part, Pipeline) for inner in part.parts[1:]]
        behind = {id(part) for inner in piped for part in walk_statements(inner)}
        commands = _commands(parts)
        reading = [command for command in commands if command.name == "read"]
        if len(reading) != 1 or id(reading[0]) in behind or any(isinstance(part, Definition) for part in parts):
            return {}
        *options, name = [word.value for word in reading[0].words[1:]] or [""]
        # `IFS=` keeps the blanks around a line; any other assignment may change how it is split.
        is_whole = all(setting.name == "IFS" and not setting.value.value for setting in reading[0].assignments)
        if not is_whole or not self._is_own(name, is_only=True):
            return {}
        listing = listed_names(fed_by, self._expander, places, now)
        if listing is None or listing.separator != _LINE_ENDS.get(" ".join(options)):
            return {}
        leaves_lines = all(id(command) in behind or _leaves_lines(command, name) for command in commands)
        return {name: Value("text", listing.names)} if leaves_lines else {}

    def output(self, part: Subshell, places: PossibleDirectories, now: Bindings) -> Value | None:
        """Return the value of the word that a `$(…)` becomes."""
        if _prints_number(part):
            return NUMBER
        statement = contents_of(part)
        if isinstance(statement, SimpleCommand) and None not in places and is_quiet(statement):
            words = self._expander.words_of(statement, places[0] or "", now) or []
            if prints_revisions(words):
                return REVISION
            if words == ["pwd"]:
                return _text(map(str, places))
            # Outside a repository nothing is printed, hence the empty value.
            if prints_top(words):
                return _text((*(top for place in places for top in repository_roots(str(place))), ""))
        listing = listed_names(statement, self._expander, places, now)
        return None if listing is None or listing.separator == "\0" else Value("words", listing.names)


def _held(word: Word, now: Bindings) -> Value:
    """Return the value of the variable or substitution that is a whole word."""
    return now.get(word.variables[0].name, OPEN) if word.value == VARIABLE else OPEN


def _text(found: Iterable[str]) -> Value | None:
    """Return a value that is one of these texts, or None if one of them is not known."""
    texts = tuple(dict.fromkeys(found))
    return Value("text", texts) if all(map(is_known, texts)) else None


def _sets_places(everything: Iterable[Statement]) -> bool:
    """True if a script may set a variable with which the shell finds directories or splits values."""
    for part in everything:
        texts: list[str] = []
        if isinstance(part, ForEach):
            texts = [part.variable]
        elif isinstance(part, SimpleCommand):
            # `env`, `read`, `printf -v` and the like take the name as a word.
            assigned = () if part.name == "read" else part.assignments
            texts = [*(assignment.text for assignment in assigned), *(word.value for word in part.words)]
        if any(map(_SETS_PLACE.match, texts)):
            return True
    return False


def _inlined_functions(everything: Sequence[Statement]) -> dict[str, Statement]:
    """Return the bodies of functions that can be judged at each call, as if written there.

    No program has such a name, so that nothing else runs where the function is not defined.
    """
    functions = [part for part in everything if isinstance(part, Definition)]
    counts = Counter(part.name for part in functions)
    calls = [part for part in everything if isinstance(part, SimpleCommand) and part.name in counts]
    # A call is a copy of the body, so many calls would multiply the work.
    if len(calls) > MAX_CALLS:
        return {}
    inlined: dict[str, Statement] = {}
    for function in functions:
        name = function.name
        own = [part for part in calls if part.name == name]
        inside = [part for part in walk_statements(function.body) if isinstance(part, SimpleCommand | Definition)]
        is_flat = not any(isinstance(part, Definition) or part.name in counts for part in inside)
        is_plain = all(part.words[0].text == name and not part.assignments for part in own)
        is_other = facts_of(name) or shutil.which(name) or not _FUNCTION.match(name) or name in group("keywords")
        if own and is_flat and is_plain and counts[name] == 1 and not is_other:
            inlined[name] = function.body
    return inlined


def _either(first: PossibleDirectories, second: PossibleDirectories) -> PossibleDirectories:
    together = tuple(dict.fromkeys((*first, *second)))
    return together if len(together) <= MAX_POSSIBLE_DIRECTORIES else (*together[: MAX_POSSIBLE_DIRECTORIES - 1], None)


def _targets_of_cd(targets: list[str], place: str | None) -> tuple[str | None, ...]:
    """Return the directory that `cd` with these words leads to, by name and with links followed."""
    targets = [target for target in targets if target not in ("-L", "-P", "-e", "-@", "--")]
    target = targets[0] if targets else os.path.expanduser("~")
    if len(targets) > 1 or UNKNOWN in target or target.startswith(("-", "+")):
        return (None,)
    if place is None and not target.startswith("/"):
        return (None,)
    # `cd` keeps the name of a link in `$PWD`, but `..` in a later command follows the real directory.
    logical = os.path.normpath(os.path.join(place or "/", target))
    physical = resolve(target, place or "/")
    if resolve(logical, "/").path == physical.path:
        return (logical,)
    return (logical, physical.path if physical.is_certain else None)


def _own_words(command: SimpleCommand) -> list[str]:
    """Return a command's words without words such as `time` and `builtin` before it."""
    return list(dropwhile(_PREFIXES.__contains__, (word.value for word in command.words)))


def _read_into(command: SimpleCommand) -> tuple[str, ...]:
    values = _own_words(command)
    return (read_names(values) or ()) if values[:1] == ["read"] else ()


def _assigned_words(command: SimpleCommand) -> Iterator[tuple[str, Word]]:
    """Yield the variables that a command sets, each with its value as a word, or `_ANY`."""
    declared = declared_assignments(command) or ()
    for one in (*command.assignments, *declared):
        is_plain = one.items is None and not one.text.startswith(f"{one.name}+")
        is_behind = bool(command.words) and not declared
        yield one.name, one.value if is_plain and not is_behind else _ANY
    yield from ((name, _ANY) for name in _read_into(command))


def _may_set_any(command: SimpleCommand) -> bool:
    """True if a command may set variables that its words do not tell."""
    if not command.words:
        return False
    first, values = command.words[0], _own_words(command)
    if not values or not first.is_fixed or (first.live and values[0] not in ("[", "[[")):
        return True
    if values[0] == "printf":
        return values[1:2] != [] and (values[1].startswith("-") or not command.words[1].is_literal)
    if values[0] in _SETTERS and values != ["exec"]:
        declared = declared_assignments(command)
        return declared is None or not all("=" in one.text and is_script_variable(one.name) for one in declared)
    return values[0] == "read" and read_names(values) is None


def _is_number(word: Word, outputs: Mapping[str, Subshell]) -> bool:
    """True if a word is a number, or the result of arithmetic or of a command that prints one."""
    if word.is_fixed:
        return bool(_NUMBER.match(word.value))
    name = word.variables[0].name if word.value == VARIABLE else ""
    return name == SUM or (name in outputs and _prints_number(outputs[name]))


def _prints_number(part: Subshell) -> bool:
    """True if the last command of a substitution prints one number, or `seq` several."""
    statement = contents_of(part)
    last = statement.parts[-1] if isinstance(statement, Pipeline) else statement
    if not isinstance(last, SimpleCommand) or not all(word.is_fixed for word in last.words):
        return False
    reads = [redirect for redirect in last.redirects if redirect.operator == "<"]
    if not is_quiet(replace(last, redirects=tuple(one for one in last.redirects if one not in reads))):
        return False
    written = "\0".join(word.value for word in last.words)
    is_fed = last is not statement or bool(reads)
    return bool(_PRINTS_NUMBER.match(written) or (is_fed and _COUNTS_INPUT.match(written)))


def _commands(parts: Iterable[Statement]) -> list[SimpleCommand]:
    return [part for part in parts if isinstance(part, SimpleCommand)]


def _replaces_input(command: SimpleCommand) -> bool:
    """True if a command reads a file or a here-document in place of what a pipeline feeds it."""
    return command.heredoc is not None or any("<" in redirect.operator for redirect in command.redirects)


def _leaves_lines(command: SimpleCommand, name: str) -> bool:
    """True if a command in a loop neither reads the loop's input nor replaces it, so that `read` gets whole lines."""
    values = [word.value for word in command.words]
    if values[:1] in ([], ["read"], ["exec"]):
        return not _replaces_input(command)
    if values[0] in _IGNORE_INPUT or any(redirect.operator == "<" for redirect in command.redirects):
        return True
    last = command.words[-1]
    is_given = last.value == VARIABLE and last.variables[0].name == name
    return is_given and not any(map(_INPUT.match, values)) and bool(_READS_LAST.fullmatch("\0".join(values[:-1])))
