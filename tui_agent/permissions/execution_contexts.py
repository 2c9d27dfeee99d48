"""A simple command in the places where it may run: its words there, what it reads, what it changes.

Each value that the script's variables may have is a turn of its own, and what another command hands on is looked up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from .listing_output import Listing, find_output_names, listing_output
from .literal_output import may_expand_to_anything
from .normalized_argv import DECLARATION_COMMANDS, without_expansion
from .path_checks import AllowScope, ExecutionContext
from .path_judge import PathJudge
from .path_resolution import links_stay_inside
from .read_only_check import collect_reads
from .read_only_options import Reads
from .remote_url_secrets import find_remote_url_secret
from .repository_settings import find_program_setting
from .script_variables import NUMBER, REVISION, has_known_values
from .shell_effects import effects_of, wrapper_effects
from .shell_expansion import WORDS, Bindings, Expander, ListedDirectories, has_glob, single_bindings
from .shell_flow import ScriptStep
from .shell_syntax import (
    SUM,
    UNKNOWN,
    VARIABLE,
    SimpleCommand,
    Statement,
    Word,
    names,
)
from .shell_wrappers import Wrapping
from .subcommand_effects import Effects
from .tree_filter import find_filter
from .xargs_input import accepts_any_files, find_exec_words, splits_at_nul

MAX_WORDS = 5_000
"""Most words of one command after expansion."""
_TAKING_NUMBERS = names("[ [[ test head tail sed seq sleep printf")
"""Commands to which a number never means a file, or nothing worse than one of that name."""
_BRACKETS = ("[", "[[")
"""Names of commands that look like the beginning of a pattern."""
_OPTION_SIGNS = ("-", "(", ")", "!", ",")
"""What begins an option, or an operator of `find`."""


@dataclass(frozen=True, slots=True)
class Task:
    """One simple command to be judged."""

    step: ScriptStep
    command: SimpleCommand
    depth: int
    inherited_scope: AllowScope | None
    """What already allows it."""
    takes: Literal["nothing", "files", "paths", "lines"] = "nothing"
    """What stands for its unknown words, if a wrapper gives it some."""
    outer: SimpleCommand | None = None
    """The command that runs it."""
    is_written: bool = True
    """Its name stands in the script, and is not what the shell makes of braces."""


class ExecutionContexts:
    """Puts the commands of one script into the places where they run."""

    def __init__(self, paths: PathJudge, expander: Expander, trace: list[str], *, is_trusted: bool) -> None:
        """
        Args:
            paths: looks up paths.
            expander: expands words.
            trace: gets a line for what keeps a command from only reading.
            is_trusted: whether the workspace's repository may be looked at by git without a question.
        """
        self._paths = paths
        self._expander = expander
        self._trace = trace
        self._is_trusted = is_trusted

    def contexts_for(
        self, command: SimpleCommand, wrapping: Wrapping | None, place: str | None, task: Task
    ) -> list[ExecutionContext]:
        """A command in one directory: once for each value that the script's variables may have."""
        bindings = _told(command, task.step.bindings)
        turns = single_bindings(bindings, command.words)
        if turns is not None:
            return [self._in_turn(command, wrapping, place, task, turn, ()) for turn in turns]
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
            return ExecutionContext(place, (), None, Effects(), listed=seen, bindings=bindings)
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
            known = find_exec_words(words) if _is_given_as_found(command) else None
            found = tuple(one for one, word in zip(known or (), words, strict=False) if one != word)
        elif task.takes in ("paths", "lines"):
            known, listed = self._fed(command, expanded, listed, place, task)
        reads = Reads() if not command.words else collect_reads(known, command) if known else None
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
        effects = effects_of(words, command) if own is words else wrapper_effects(own)
        return ExecutionContext(place, words, reads, effects, own, seen, bindings)

    def _only_reads(
        self, reads: Reads, command: SimpleCommand, place: str | None, task: Task, bindings: Bindings
    ) -> bool:
        """Whether a command that only reads by its words does so here, too."""
        if reads.follows_links and not self._follows_inside(reads, place):
            return False
        if reads.repository is not None and self._starts_programs(reads.repository, place):
            return False
        if reads.shows_remote_urls and self._shows_secret(reads.repository or ".", place):
            return False
        if task.outer is not None and command.name in DECLARATION_COMMANDS:
            # Only where it stands by itself is its value not split into more words.
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
        """The words that tell what a command does by itself; what it runs is judged by itself, too."""
        if wrapping is None or not wrapping.own:
            return words
        if wrapping.is_transparent:
            return ()
        own = self._expanded(replace(command, words=wrapping.own), place, bindings) or ()
        return tuple(word for group in own for word in group)

    def listed(self, words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> ListedDirectories:
        """The directories that the expansion of these words lists, since it was asked last."""
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
        """The words of a command behind `xargs` with the names that it may get, and where these begin."""
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
        """The names that stand for a command's unknown words."""
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
        """Whether the command's name, or one of its options, is not written as the shell passes it on: what follows it
        in the script, and what an option runs, was read from what is written."""
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
        """Whether a repository's own settings may make git start programs while it looks: in a folder that is not
        trusted they are not even read."""
        if not self._is_trusted:
            self._trace.append("git: this folder is not trusted, and git would apply its repository's settings")
            return True
        if place is None and not repository.startswith("/"):
            self._trace.append("git: it is not certain in which repository it looks")
            return True
        setting = find_program_setting(self._paths.path_lookup.look(repository, place).resolved)
        if setting is not None:
            self._trace.append(f"git: the repository's own settings may start a program: {setting}")
        return setting is not None

    def _shows_secret(self, repository: str, place: str | None) -> bool:
        """Whether the addresses of a repository hold a secret, as far as git's settings tell."""
        file = find_remote_url_secret(self._paths.path_lookup.look(repository, place).resolved)
        if file is not None:
            self._trace.append(f"git: an address in {file} holds a secret, which would be shown")
        return file is not None

    def _expanded(self, command: SimpleCommand, place: str | None, bindings: Bindings) -> list[tuple[str, ...]] | None:
        """What the shell would pass on for each word; None if there is too much."""
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


def _told(command: SimpleCommand, bindings: Bindings) -> Bindings:
    """The bindings with something in place of what is only known to be a revision or a number, for a command that
    takes neither for a path."""
    kinds = (REVISION, NUMBER) if command.name == "git" else (NUMBER,) if command.name in _TAKING_NUMBERS else ()
    if not kinds:
        return bindings
    told = {
        name.removesuffix(kind) + words: values
        for name, values in bindings.items()
        for kind in kinds
        if name.endswith(kind)
        for words in ("", WORDS)
    }
    return {**bindings, **told, SUM: ("0",)}


def _is_list(word: Word, bindings: Bindings) -> bool:
    """Whether a word becomes a list of which not every part need be there."""
    if word.value != VARIABLE or not word.variables or word.variables[0].quoted:
        return False
    name = word.variables[0].name
    return name + WORDS in bindings and name + REVISION not in bindings and name + NUMBER not in bindings


def _is_given_as_found(command: SimpleCommand) -> bool:
    """Whether what `find` comes upon stands in no word together with anything else, which would name another file."""
    return all(word.text == "{}" for word in command.words if UNKNOWN in word.value)


def _takes(listing: Listing, word: str, *, is_last: bool) -> bool:
    """Whether a word of a command behind `xargs` can only become what is listed."""
    return (word == UNKNOWN and is_last) or not listing.on_one_line


def _with_bare(reads: Reads, words: list[str]) -> Reads | None:
    """What a command reads that may get all of a list or nothing; None if a part of the list could mean more."""
    if not accepts_any_files(words):
        return None
    bare = collect_reads(words, SimpleCommand("", ()))
    return replace(reads, paths=(*reads.paths, *bare.paths), trees=(*reads.trees, *bare.trees)) if bare else None
