"""A simple command in each directory where it may run: its words, its reads and its changes there.

Each possible value of the script's variables is a case of its own; names passed by another command are looked up.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tui_agent.permissions.commands.analysis import accepts_any_files, invocation_of, read_only_use
from tui_agent.permissions.commands.catalogue import canonical_name, writer
from tui_agent.permissions.commands.invocation import Invocation, Reads, Write
from tui_agent.permissions.commands.wrappers import Wrapping, splits_at_nul
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.paths.path_resolution import links_stay_inside
from tui_agent.permissions.paths.tree_filter import find_filter
from tui_agent.permissions.rules.normalized_argv import DECLARATION_COMMANDS, without_expansion
from tui_agent.permissions.shell.expansion import (
    WORDS,
    Bindings,
    Expander,
    ListedDirectories,
    has_glob,
    single_bindings,
)
from tui_agent.permissions.shell.syntax import (
    SUM,
    UNKNOWN,
    VARIABLE,
    SimpleCommand,
    Statement,
    Word,
    names,
)

from .listings import Listing, find_output_names, listing_output, may_expand_to_anything
from .path_checks import AllowScope, ExecutionContext
from .repository import find_program_setting, find_remote_url_secret
from .script_variables import NUMBER, REVISION, has_known_values
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


class ExecutionContexts:
    """Expands the commands of one script for each directory where they may run."""

    def __init__(self, paths: PathJudge, expander: Expander, trace: list[str], *, is_trusted: bool) -> None:
        """
        Args:
            paths: looks up paths.
            expander: expands words.
            trace: gets a line for each reason why a command is not read-only.
            is_trusted: True if git may look at the workspace's repository without a question.
        """
        self._paths = paths
        self._expander = expander
        self._trace = trace
        self._is_trusted = is_trusted

    def contexts_for(
        self, command: SimpleCommand, wrapping: Wrapping | None, place: str | None, task: Task
    ) -> list[ExecutionContext]:
        """Return a command in one directory, once for each value of the script's variables."""
        bindings = _with_placeholder_values(command, task.step.bindings)
        turns = single_bindings(bindings, command.words)
        if turns is not None:
            return [self._in_turn(command, wrapping, place, task, turn, ()) for turn in turns]
        # Too many combinations to judge one by one: judged once with all values as a list.
        several = [name for name, values in bindings.items() if len(values) > 1]
        return [self._in_turn(command, wrapping, place, task, bindings, several)]

    def _in_turn(
        self,
        command: SimpleCommand,
        wrapping: Wrapping | None,
        place: str | None,
        task: Task,
        bindings: Bindings,
        several: Sequence[str],
    ) -> ExecutionContext:
        self._expander.take_listed_directories()
        expanded = self._expanded(command, place, bindings)
        seen = self.listed(command.words, command.nested, bindings)
        if expanded is None:
            writes = (Write(UNKNOWN),) if writer(canonical_name(command.name)) else ()
            return ExecutionContext(place, (), Invocation(writes=writes), seen, bindings)
        words = tuple(word for group in expanded for word in group)
        known: Sequence[str] | None = words
        listed = [
            at
            for at, word in enumerate(command.words)
            if word.variables
            and (any(variable.name in several for variable in word.variables) or _is_list(word, bindings))
        ]
        found: tuple[str, ...] = ()
        if task.takes == "files":
            known = (
                [word[: -len(UNKNOWN)] if _FILE.match(word) else word for word in words]
                if _is_given_as_found(command)
                else None
            )
            found = tuple(one for one, word in zip(known or (), words, strict=False) if one != word)
        elif task.takes in ("paths", "lines"):
            known, listed = self._fed(command, expanded, listed, place, task)
        reads = Reads() if not command.words else read_only_use(known, command) if known else None
        # A filter may pass none of the names, and the command then runs without them.
        if reads is not None and listed:
            reads = _with_bare(reads, [word for group in expanded[: listed[0]] for word in group])
        if reads is not None and not set(found).isdisjoint(reads.paths):
            includes = (
                find_filter([word.value for word in task.outer.words]) if task.outer and not reads.trees else None
            )
            reads = replace(reads, trees=(*reads.trees, *found), includes=includes)
        if reads is not None and not self._only_reads(reads, command, place, task, bindings):
            reads = None
        own = self._own_words(words, command, wrapping, place, bindings)
        settled = _settled(words, expanded, listed)
        found_use = invocation_of(settled, command, own, reads, is_wrapper=own is not words)
        return ExecutionContext(place, words, found_use, seen, bindings)

    def _only_reads(
        self, reads: Reads, command: SimpleCommand, place: str | None, task: Task, bindings: Bindings
    ) -> bool:
        """True if a command that is read-only by its words is read-only in this directory, too."""
        if reads.follows_links and not self._follows_inside(reads, place):
            return False
        if reads.repository is not None and self._starts_programs(reads.repository, place):
            return False
        if reads.shows_remote_urls and self._shows_secret(reads.repository or ".", place):
            return False
        if task.outer is not None and command.name in DECLARATION_COMMANDS:
            # Behind another command it is not a declaration: the shell splits its values into words.
            return False
        return task.is_written and not self._becomes_another(task.command, command, place, bindings)

    def _own_words(
        self,
        words: tuple[str, ...],
        command: SimpleCommand,
        wrapping: Wrapping | None,
        place: str | None,
        bindings: Bindings,
    ) -> tuple[str, ...]:
        """Return the words that describe the command's own effects. The command it runs is judged separately."""
        if wrapping is None or not wrapping.own:
            return words
        if wrapping.is_transparent:
            return ()
        own = self._expanded(replace(command, words=wrapping.own), place, bindings) or ()
        return tuple(word for group in own for word in group)

    def listed(self, words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> ListedDirectories:
        """Return the directories that expansion has listed since the previous call."""
        listed = self._expander.take_listed_directories()
        unsure = [word for word in words if (word.variables or word.live) and not has_known_values(word, bindings)]
        return replace(listed, is_certain=listed.is_certain and not may_expand_to_anything(unsure, nested, bindings))

    def _fed(
        self,
        command: SimpleCommand,
        expanded: list[tuple[str, ...]],
        listed: list[int],
        place: str | None,
        task: Task,
    ) -> tuple[list[str] | None, list[int]]:
        """Return the words of a command behind `xargs` with every name it may get, and the indices of these."""
        listing = self._listing(place, task)
        if listing is None:
            return None, listed
        known: list[str] = []
        for at, group in enumerate(expanded):
            for word in group:
                if UNKNOWN in word:
                    if not _takes(listing, word, is_last=at == len(expanded) - 1):
                        return None, listed
                    listed = [*listed, at]
                    is_found = task.takes == "paths" and command.words[at].text == "{}"
                    known.extend(name if is_found else word.replace(UNKNOWN, name) for name in listing.names)
                else:
                    known.append(word)
        return known, sorted(listed)

    def _listing(self, place: str | None, task: Task) -> Listing | None:
        """Return the names that replace a command's unknown words, or None."""
        if place is None or task.outer is None:
            return None
        if task.takes == "paths":
            words = self._plain_words(task.outer, place, task.step.bindings)
            return find_output_names(words, place) if words else None
        is_nul_separated = splits_at_nul(task.outer)
        if task.step.fed_by is None or is_nul_separated is None:
            return None
        listing = listing_output(task.step.fed_by, lambda fed: self._plain_words(fed, place, task.step.bindings), place)
        return listing if listing is not None and listing.is_nul_separated == is_nul_separated else None

    def _plain_words(self, command: SimpleCommand, place: str, bindings: Bindings) -> list[str] | None:
        turns = single_bindings(bindings, command.words)
        if turns is None or len(turns) != 1:
            return None
        return [value for word in command.words for value in self._expander.expand(word, place, bindings)]

    def _follows_inside(self, reads: Reads, place: str | None) -> bool:
        trees = [self._paths.path_lookup.look(tree, place) for tree in reads.trees]
        return all(facts.is_inside and links_stay_inside(facts.resolved) for facts in trees)

    def _becomes_another(
        self, written: SimpleCommand, command: SimpleCommand, place: str | None, bindings: Bindings
    ) -> bool:
        """True if the shell expands the command's name or one of its options to another text.

        The analysis of the rest of the script relies on the written text.
        """
        name = written.words[0] if written.words else None
        if name and (name != command.words[0] or (has_glob(name) and name.value not in _BRACKETS)):
            return True
        is_find = command.name.endswith("find")
        patterns = (word for word in command.words if has_glob(word) or (is_find and word.variables))
        return any(
            value[:1] in _OPTION_SIGNS and value != word.value
            for word in patterns
            for value in self._expander.expand(word, place, bindings)
        )

    def _starts_programs(self, repository: str, place: str | None) -> bool:
        """True if a repository's settings may make git start programs while it reads, or the folder is untrusted."""
        if not self._is_trusted:
            self._trace.append("git: this folder is not trusted, and git would apply its repository's settings")
            return True
        if place is None and not repository.startswith("/"):
            self._trace.append("git: its repository is not certain")
            return True
        setting = find_program_setting(self._paths.path_lookup.look(repository, place).resolved)
        if setting is not None:
            self._trace.append(f"git: the repository's own settings may start a program: {setting}")
        return setting is not None

    def _shows_secret(self, repository: str, place: str | None) -> bool:
        """True if git's settings hold a URL with a secret for a repository."""
        file = find_remote_url_secret(self._paths.path_lookup.look(repository, place).resolved)
        if file is not None:
            self._trace.append(f"git: a URL in {file} contains a secret, which the output would show")
        return file is not None

    def _expanded(self, command: SimpleCommand, place: str | None, bindings: Bindings) -> list[tuple[str, ...]] | None:
        """Return the words that the shell would pass for each word, or None if there are too many."""
        words = command.words
        if command.name == "[[":
            words = tuple(without_expansion(word) for word in words)
        groups: list[tuple[str, ...]] = []
        count = 0
        for word in words:
            groups.append(self._expander.expand(word, place, bindings))
            count += len(groups[-1])
            if count > MAX_WORDS:
                return None
        return groups


def _with_placeholder_values(command: SimpleCommand, bindings: Bindings) -> Bindings:
    """Return the bindings with values for revisions and numbers, for a command that takes neither for a path."""
    kinds = (REVISION, NUMBER) if command.name == "git" else (NUMBER,) if command.name in _TAKING_NUMBERS else ()
    if not kinds:
        return bindings
    placeholders = {
        name.removesuffix(kind) + words: values
        for name, values in bindings.items()
        for kind in kinds
        if name.endswith(kind)
        for words in ("", WORDS)
    }
    return {**bindings, **placeholders, SUM: ("0",)}


def _is_list(word: Word, bindings: Bindings) -> bool:
    """True if a word becomes a list, some parts of which may be missing."""
    if word.value != VARIABLE or not word.variables or word.variables[0].quoted:
        return False
    name = word.variables[0].name
    return name + WORDS in bindings and name + REVISION not in bindings and name + NUMBER not in bindings


def _settled(words: tuple[str, ...], expanded: Sequence[tuple[str, ...]], listed: Sequence[int]) -> tuple[str, ...]:
    """Return the words of a command that may get some of the listed names, with `UNKNOWN` for names whose order counts.

    `cp a $(ls)` changes the last name that arrives.
    """
    entry = writer(canonical_name(words[0])) if listed and words else None
    if entry is None or entry.writes == "ALL":
        return words
    return tuple(word for at, group in enumerate(expanded) for word in ((UNKNOWN,) if at in listed else group))


def _is_given_as_found(command: SimpleCommand) -> bool:
    """True if each match of `find` is a word of its own, not part of a longer name."""
    return all(word.text == "{}" for word in command.words if UNKNOWN in word.value)


def _takes(listing: Listing, word: str, *, is_last: bool) -> bool:
    """True if a word of a command behind `xargs` can only become listed names."""
    return (word == UNKNOWN and is_last) or not listing.on_one_line


def _with_bare(reads: Reads, words: list[str]) -> Reads | None:
    """Return the reads of a command that may get all names or none, or None if one of the names could mean more."""
    if not accepts_any_files(words):
        return None
    bare = read_only_use(words, SimpleCommand("", ()))
    return replace(reads, paths=(*reads.paths, *bare.paths), trees=(*reads.trees, *bare.trees)) if bare else None
