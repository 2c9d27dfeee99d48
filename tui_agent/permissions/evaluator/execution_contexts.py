"""A simple command in each directory where it may run: its words, its reads and its changes there.

Each possible value of the script's variables is a case of its own; names passed by another command are looked up.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat, takewhile
from typing import Literal

from tui_agent.git.repository import possible_repositories
from tui_agent.git.repository_safety import find_program_setting, find_remote_url_secret
from tui_agent.permissions.commands.analysis import (
    accepts_any_files,
    has_options_beyond_reading,
    invocation_of,
    may_run_shell_text,
    obeyed_files,
    read_only_use,
)
from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.builtins import DECLARATION_COMMANDS, is_harmless_setting
from tui_agent.permissions.commands.catalogue import canonical_name, group, writer
from tui_agent.permissions.commands.invocation import Invocation, Reads, Write
from tui_agent.permissions.commands.searches import find_filter
from tui_agent.permissions.commands.wrappers import RUNS_INPUT, Wrapping, expand_command_braces, splits_at_nul, unwrap
from tui_agent.permissions.paths.path_resolution import is_within, links_stay_inside
from tui_agent.permissions.rules.rule_coverage import AllowScope, allow_scope
from tui_agent.permissions.rules.rule_set import normalize_command
from tui_agent.permissions.shell.expansion import (
    OPEN,
    Bindings,
    Expander,
    ListedDirectories,
    Value,
    has_glob,
    is_computed_name,
    single_bindings,
    without_expansion,
)
from tui_agent.permissions.shell.syntax import (
    PIPE,
    SUM,
    UNKNOWN,
    VARIABLE,
    SimpleCommand,
    Statement,
    Word,
    names,
)
from tui_agent.permissions.verdicts import Finding

from .case_state import CaseState, ExecutionContext
from .listings import Listing, find_output_names, listed_names, may_expand_to_anything
from .shell_flow import ScriptStep

MAX_WORDS = 5_000
"""Maximum number of words of one command after expansion."""
_TAKING_NUMBERS = names("[ [[ test head tail sed seq sleep printf")
"""Commands for which a number is never a file, or at worst a harmless read of one."""
_FILE = re.compile(rf".*/{UNKNOWN}\Z", re.DOTALL)
_BRACKETS = ("[", "[[")
"""Command names that look like the start of a pattern."""
_OPTION_SIGNS = ("-", "(", ")", "!", ",")
"""First characters of an option or of an operator of `find`."""


@dataclass(frozen=True, slots=True)
class Task:
    """One simple command to judge."""

    step: ScriptStep
    command: SimpleCommand
    depth: int
    inherited_scope: AllowScope | None
    """Permission that already covers it."""
    takes: Literal["nothing", "files", "paths", "lines"] = "nothing"
    """Values of its unknown words, if a wrapper passes some."""
    outer: SimpleCommand | None = None
    """The command that runs it."""
    is_written: bool = True
    """True if its name is literal in the script, not a result of brace expansion."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A command in one directory, with one value for each variable."""

    command: SimpleCommand
    wrapping: Wrapping | None
    place: str | None
    task: Task
    bindings: Bindings


@dataclass(frozen=True, slots=True)
class Part:
    """A simple command with everything that is known about it."""

    task: Task
    command: SimpleCommand
    """The command with its braces expanded."""
    wrapping: Wrapping | None
    ruling: Finding | None
    """The finding of the rules on its words."""
    scope: AllowScope | None
    contexts: Sequence[ExecutionContext]
    is_harmless: bool
    """True if its assignments change nothing about what any program does."""
    is_own: bool
    """True if its name runs a program from the workspace, which may do anything."""
    is_reading: bool
    """True if it only reads."""
    runs_written: bool
    """True if it runs or obeys a file that an earlier part of the command line wrote."""

    @property
    def runs_written_shell(self) -> bool:
        """True if that file may be one of shell commands."""
        sets_path = any(one.name == "PATH" for one in self.command.assignments)
        names_run = (found.words[0] for found in self.contexts if found.words)
        return self.runs_written and (sets_path or any(map(may_run_shell_text, names_run)))

    @property
    def is_fed(self) -> bool:
        """True if its input is the output of other commands."""
        return self.task.step.is_fed or any(PIPE in redirect.target.value for redirect in self.command.redirects)

    @property
    def is_plain(self) -> bool:
        """True if it is the system's program, run as usual."""
        return self.is_harmless and not self.is_own


class ExecutionContexts:
    """Expands the commands of one script for each directory where they may run."""

    def __init__(self, state: CaseState, tool: str, expander: Expander, *, is_trusted: bool) -> None:
        self._lookup, self._rules = state.judge.path_lookup, state.judge.rules
        self._look = self._lookup.look
        self._tool = tool
        self._expander = expander
        self._trace, self._written = state.trace, state.written
        self._is_trusted = is_trusted
        """True if a command may look at the workspace's repository without a question."""
        self.reasons: dict[str, str] = {}
        """Reasons why commands do not count as read-only because of their repository."""

    def part(self, task: Task) -> Part:
        """Return a command with everything that is known about it."""
        command, places = expand_command_braces(task.command), task.step.places
        wrapping, view = unwrap(command), normalize_command(command)
        ruling = self._rules.judge_command(self._tool, view, self._trace)
        scope = allow_scope(ruling, view) or task.inherited_scope
        contexts = [found for place in places for found in self._contexts_in(command, wrapping, place, task)]
        is_own = any(self._is_workspace_program(command, place) for place in places)
        is_harmless = is_harmless_setting(command)
        is_reading = is_harmless and not is_own and all(found.invocation.reads is not None for found in contexts)
        if not is_reading or (wrapping and wrapping.inner_commands):
            contexts = [_with_changes(found, command) for found in contexts]
        runs_written = not is_reading and any(map(self._runs_written, contexts, repeat(command)))
        return Part(task, command, wrapping, ruling, scope, contexts, is_harmless, is_own, is_reading, runs_written)

    def why_git_asks(self, part: Part) -> str | None:
        """Return which setting or link makes git unsafe, unless it is in the workspace's repository, which is trusted.

        No rule and no mode covers that: they are for what the command does, not for what a folder brings.
        """
        if part.is_reading or canonical_name(part.command.name) not in group("version_control"):
            return None
        for context in part.contexts:
            place = context.invocation.runs_in or "."
            if context.directory is None and not place.startswith("/"):
                continue
            directory = self._look(place, context.directory).resolved
            top = next(iter(possible_repositories(directory)), directory)
            if self._is_trusted and is_within(self._lookup.workspace, top):
                continue
            if why := find_program_setting(directory, is_open=self._lookup.is_open):
                return why
        return None

    def scripts_of(self, part: Part) -> list[str]:
        """Return the existing files that a command runs or obeys."""
        found = (path for context in part.contexts for path in self._obeyed(context, part.command))
        return [path for path in found if os.path.isfile(path)]

    def _obeyed(self, context: ExecutionContext, command: SimpleCommand) -> set[str]:
        """Return the resolved paths of the files that a command runs or obeys, existing or not."""
        if not context.words:
            return set()
        obeyed = [*obeyed_files(context.words)]
        # The input of any other program is rather its data.
        is_own_name = "/" in context.words[0]
        obeyed += [one.target.value for one in command.redirects if one.operator == "<" and not is_own_name]
        looked = (path for path in obeyed if is_known(path) and (context.directory or path.startswith("/")))
        return {self._look(path, context.directory).resolved for path in looked}

    def _runs_written(self, context: ExecutionContext, command: SimpleCommand) -> bool:
        """True if a command runs a file that an earlier part wrote, also through a changed PATH."""
        if not self._written or not context.words:
            return False
        named = {written.rpartition("/")[2] for written in self._written}
        if context.words[0] in named and any(one.name == "PATH" for one in command.assignments):
            return True
        found = self._obeyed(context, command)
        # What it moved or copied may be a directory, which is not there yet.
        made = [written for written in self._written if not os.path.isdir(written)]
        return not found.isdisjoint(self._written) or any(is_within(path, one) for path in found for one in made)

    def _is_workspace_program(self, command: SimpleCommand, place: str | None) -> bool:
        program = workspace_program(command.name, self._lookup.workspace, place) if command.words else None
        if program is not None:
            self._trace.append(f"programs: {command.name} would come from the workspace, as {program}")
        return program is not None

    def _contexts_in(
        self, command: SimpleCommand, wrapping: Wrapping | None, place: str | None, task: Task
    ) -> list[ExecutionContext]:
        """Return a command in one directory, once for each value of the script's variables."""
        bindings = _with_placeholder_values(command, task.step.bindings)
        # Too many combinations to judge one by one are judged once, with all values as a list.
        turns = single_bindings(bindings, command.words) or [bindings]
        return [self._in_turn(_Turn(command, wrapping, place, task, turn)) for turn in turns]

    def listed(self, words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> ListedDirectories:
        """Return the directories that expansion has listed since the previous call."""
        listed = self._expander.take_listed_directories()
        return replace(listed, is_certain=listed.is_certain and not may_expand_to_anything(words, nested, bindings))

    def _in_turn(self, turn: _Turn) -> ExecutionContext:
        command, place, bindings, takes = turn.command, turn.place, turn.bindings, turn.task.takes
        self._expander.take_listed_directories()
        expanded = self._expanded(command, place, bindings)
        seen = self.listed(command.words, command.nested, bindings)
        if expanded is None:
            writes = (Write(UNKNOWN),) if writer(canonical_name(command.name)) else ()
            return ExecutionContext(place, (), Invocation(writes=writes), seen, bindings)
        words = tuple(word for values in expanded for word in values)
        known: Sequence[str] | None = words
        listed = [at for at, word in enumerate(command.words) if _is_list(word, bindings)]
        found: tuple[str, ...] = ()
        if takes == "files":
            # Each match of `find` must be a word of its own, not part of a longer name.
            is_whole = all(word.text == "{}" for word in command.words if UNKNOWN in word.value)
            known = [word[: -len(UNKNOWN)] if _FILE.match(word) else word for word in words] if is_whole else None
            found = tuple(one for one, word in zip(known or (), words, strict=False) if one != word)
        elif takes != "nothing":
            known, listed = self._fed(turn, expanded, listed)
        reads = Reads() if not command.words else read_only_use(known, command) if known else None
        # A filter may pass none of the names, and the command then runs without them.
        if reads is not None and listed:
            reads = _with_bare(reads, [word for values in expanded[: listed[0]] for word in values])
        if reads is not None and not set(found).isdisjoint(reads.paths):
            outer = turn.task.outer
            includes = find_filter([word.value for word in outer.words]) if outer and not reads.trees else None
            reads = replace(reads, trees=(*reads.trees, *found), includes=includes)
        if reads is not None and not self._only_reads(reads, turn):
            reads = None
        own, settled = self._own_words(words, turn), _settled(words, expanded, listed)
        return ExecutionContext(place, words, Invocation(reads), seen, bindings, settled, own)

    def _only_reads(self, reads: Reads, turn: _Turn) -> bool:
        """True if a command that is read-only by its words is read-only in this directory, too."""
        trees = [self._look(tree, turn.place) for tree in (reads.trees if reads.follows_links else ())]
        if not all(facts.is_inside and links_stay_inside(facts.resolved) for facts in trees):
            return False
        if why := self._why_not_harmless(reads, turn.place):
            self._trace.append(f"repository: {why}")
            self.reasons[turn.command.text] = why
            return False
        # Behind another command it is not a declaration: the shell splits its values into words.
        is_split = turn.task.outer is not None and turn.command.name in DECLARATION_COMMANDS
        return not is_split and turn.task.is_written and not self._becomes_another(turn)

    def _own_words(self, words: tuple[str, ...], turn: _Turn) -> tuple[str, ...]:
        """Return the words that describe the command itself. The command it runs is judged separately."""
        if turn.wrapping is None or not turn.wrapping.own:
            return words
        if turn.wrapping.is_transparent:
            return ()
        own = self._expanded(replace(turn.command, words=turn.wrapping.own), turn.place, turn.bindings) or ()
        return tuple(word for values in own for word in values)

    def _fed(
        self, turn: _Turn, expanded: list[tuple[str, ...]], listed: list[int]
    ) -> tuple[list[str] | None, list[int]]:
        """Return the words of a command behind `xargs` with every name it may get, and the indices of these."""
        listing = self._listing(turn.place, turn.task)
        if listing is None:
            return None, listed
        known: list[str] = []
        for at, values in enumerate(expanded):
            for word in values:
                if UNKNOWN not in word:
                    known.append(word)
                    continue
                # Names on one line become words, so they can only be the last.
                if listing.separator == " " and not (word == UNKNOWN and at == len(expanded) - 1):
                    return None, listed
                listed = [*listed, at]
                is_found = turn.task.takes == "paths" and turn.command.words[at].text == "{}"
                known.extend(name if is_found else word.replace(UNKNOWN, name) for name in listing.names)
        return known, sorted(listed)

    def _listing(self, place: str | None, task: Task) -> Listing | None:
        """Return the names that replace a command's unknown words, or None."""
        if place is None or task.outer is None:
            return None
        if task.takes == "paths":
            words = self._expander.words_of(task.outer, place, task.step.bindings)
            return find_output_names(words, place) if words else None
        is_nul_separated = splits_at_nul(task.outer)
        if task.step.fed_by is None or is_nul_separated is None:
            return None
        listing = listed_names(task.step.fed_by, self._expander, (place,), task.step.bindings)
        return listing if listing is not None and (listing.separator == "\0") == is_nul_separated else None

    def _becomes_another(self, turn: _Turn) -> bool:
        """True if the shell expands the command's name or one of its options to another text.

        The analysis of the rest of the script relies on the written text.
        """
        command, written = turn.command, turn.task.command
        name = written.words[0] if written.words else None
        if name and (name != command.words[0] or (has_glob(name) and name.value not in _BRACKETS)):
            return True
        is_find = command.name.endswith("find")
        return any(
            value[:1] in _OPTION_SIGNS and value != word.value
            for word in command.words
            if has_glob(word) or (is_find and word.variables)
            for value in self._expander.expand(word, turn.place, turn.bindings)
        )

    def _why_not_harmless(self, reads: Reads, place: str | None) -> str | None:
        """Return why a repository's settings may start programs while a command reads, or show a secret."""
        repository = reads.repository
        if repository is not None:
            if not self._is_trusted:
                return "this folder is not trusted, and its settings would apply"
            if place is None and not repository.startswith("/"):
                return "it is not certain"
            if why := find_program_setting(self._look(repository, place).resolved, is_open=self._lookup.is_open):
                return f"its settings may start a program, or its data leads elsewhere: {why}"
        if reads.shows_remote_urls and (file := find_remote_url_secret(self._look(repository or ".", place).resolved)):
            return f"a URL in {file} contains a secret, which the output would show"
        return None

    def _expanded(self, command: SimpleCommand, place: str | None, bindings: Bindings) -> list[tuple[str, ...]] | None:
        """Return the words that the shell would pass for each word, or None if there are too many."""
        words = map(without_expansion, command.words) if command.name == "[[" else command.words
        groups: list[tuple[str, ...]] = []
        count = 0
        for word in words:
            groups.append(self._expander.expand(word, place, bindings))
            count += len(groups[-1])
            if count > MAX_WORDS:
                return None
        return groups


def runs_unknown(part: Part) -> bool:
    """True if only the running shell knows a command that this one runs, or its own name."""
    command, wrapping, task = part.command, part.wrapping, part.task
    bindings = task.step.bindings
    if wrapping is None or not wrapping.hidden:
        name = command.words[0] if command.words else Word("")
        return _is_computed(replace(name, value=name.value.rpartition("/")[2]), bindings)
    if wrapping.is_unknown:
        # A shell without a script reads its input, which is empty outside a pipe.
        is_fed = task.step.is_fed or (task.depth > 0 and task.outer is None)
        return wrapping.hidden != RUNS_INPUT or is_fed
    if wrapping.runs_file or wrapping.is_remote:
        return False
    return any(_is_computed(word, bindings) for word in command.words)


def may_get_options(part: Part) -> bool:
    """True if a word that the script computes may be an option with which a reader changes or runs something."""
    command, bindings = part.command, _with_placeholder_values(part.command, part.task.step.bindings)
    words = tuple(takewhile(lambda word: word.value != "--", command.words))
    open_words = [word for word in words[1:] if _may_be_option(word) and _is_computed(word, bindings)]
    return bool(open_words) and has_options_beyond_reading([word.value for word in command.words])


def _may_be_option(word: Word) -> bool:
    """True if a value may be an option: at the beginning of a word, or behind a blank in an unquoted one."""
    is_split = any(not variable.quoted for variable in word.variables)
    is_split = is_split or any(word.value[at] == UNKNOWN for at in word.live)
    return is_split or word.value.removeprefix("-")[:1] in (UNKNOWN, VARIABLE)


def _is_computed(word: Word, bindings: Bindings) -> bool:
    """True if the script computes a part of a word, which is not known. A variable of the environment is the user's."""
    if UNKNOWN in word.value or PIPE in word.value:
        return True
    held = [variable.name for variable in word.variables]
    if word.value.count(VARIABLE) > len(held):
        return True
    known = {name: bindings[name].kind for name in held if name in bindings}
    return VARIABLE in word.value and any(
        known.get(name) in ("open", "revision") or (known.get(name) in (None, "number") and is_computed_name(name))
        for name in held
    )


def _with_changes(found: ExecutionContext, command: SimpleCommand) -> ExecutionContext:
    """Return a context with everything that the command's words tell, beside what it reads if it only reads."""
    if not found.own:
        return found
    reads, is_wrapper = found.invocation.reads, found.own is not found.words
    return replace(found, invocation=invocation_of(found.settled, command, found.own, reads, is_wrapper=is_wrapper))


def _with_placeholder_values(command: SimpleCommand, bindings: Bindings) -> Bindings:
    """Return the bindings with values for revisions and numbers, for a command that takes neither for a path."""
    takes_revisions, takes_numbers = command.name in group("takes_revisions"), command.name in _TAKING_NUMBERS
    if not takes_revisions and not takes_numbers:
        return bindings
    known = {"number": Value("text", ("0",)), **({"revision": Value("text", ("HEAD",))} if takes_revisions else {})}
    return {**{name: known.get(held.kind, held) for name, held in bindings.items()}, SUM: known["number"]}


def _is_list(word: Word, bindings: Bindings) -> bool:
    """True if a word becomes a list, some parts of which may be missing."""
    if any(bindings.get(variable.name, OPEN).is_one_of_several for variable in word.variables):
        return True
    is_whole = word.value == VARIABLE and bool(word.variables) and not word.variables[0].quoted
    return is_whole and bindings.get(word.variables[0].name, OPEN).kind == "words"


def _settled(words: tuple[str, ...], expanded: Sequence[tuple[str, ...]], listed: Sequence[int]) -> tuple[str, ...]:
    """Return the words of a command that may get some of the listed names, with `UNKNOWN` for names whose order counts.

    `cp a $(ls)` changes the last name that arrives.
    """
    entry = writer(canonical_name(words[0])) if listed and words else None
    if entry is None or entry.writes == "ALL":
        return words
    return tuple(word for at, values in enumerate(expanded) for word in ((UNKNOWN,) if at in listed else values))


def _with_bare(reads: Reads, words: list[str]) -> Reads | None:
    """Return the reads of a command that may get all names or none, or None if one of the names could mean more."""
    if not accepts_any_files(words):
        return None
    bare = read_only_use(words, SimpleCommand("", ()))
    return replace(reads, paths=(*reads.paths, *bare.paths), trees=(*reads.trees, *bare.trees)) if bare else None


def workspace_program(name: str, workspace: str, directory: str | None) -> str | None:
    """Return the program in the workspace that a command's name would run, or None.

    Args:
        name: the first word of a command.
        workspace: absolute, links followed.
        directory: the command's working directory, for relative entries of PATH; None if unknown, and then a relative
            entry counts as a hit.
    """
    if "/" in name or name in group("built_in"):
        return None
    for entry, is_workspace_program in _path_entries(os.environ.get("PATH", os.defpath), workspace):
        if not entry.startswith("/") and directory is None:
            return f"{entry or '.'}/{name}"
        place = entry if entry.startswith("/") else os.path.join(directory or "/", entry)
        program = f"{place.rstrip('/')}/{name}"
        if not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        # A link in a system directory may lead to a program of the workspace.
        leads_in = os.path.islink(program) and _leads_into(os.path.realpath(program), workspace)
        return program if is_workspace_program or leads_in else None
    return None


@lru_cache(maxsize=64)
def _path_entries(path: str, workspace: str) -> tuple[tuple[str, bool], ...]:
    """Return the entries of PATH, each with True if it is relative or in the workspace.

    Cached, because every command that runs without a question is looked up again just before it runs.
    """
    return tuple(
        (
            entry,
            not entry.startswith("/")
            or _leads_into(entry, workspace)
            or _leads_into(os.path.realpath(entry), workspace),
        )
        for entry in path.split(os.pathsep)
    )


def _leads_into(path: str, workspace: str) -> bool:
    """True if a path is in the workspace. Always false for the workspace `/`, which holds every program."""
    return workspace != "/" and is_within(os.path.normpath(path), workspace)
