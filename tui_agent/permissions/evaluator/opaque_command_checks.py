"""Suspicions about a command: it may run a command that a rule forbids, or change a protected path.

A suspicion only ever asks. It arises where a rule forbids a command that another command's words or input name, and
where a script names a protected path and one of its commands gets words that only the running shell knows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_agent.permissions.commands.argv import is_known
from tui_agent.permissions.commands.indirect_commands import find_indirect_command, forbidden, reads_program_from_input
from tui_agent.permissions.commands.invocation import Invocation, pieces_of
from tui_agent.permissions.commands.wrappers import Wrapping
from tui_agent.permissions.paths.path_judge import PathJudge
from tui_agent.permissions.paths.protected_paths import may_mean_protected, protected_name
from tui_agent.permissions.shell.expansion import Expander
from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, SimpleCommand, Statement

from .script_strings import collect_script_strings
from .shell_flow import ScriptStep

_ESCAPE = re.compile(r"\\(?:[abefnrtv]|x[0-9a-fA-F]{1,2}|[0-7]{1,4})")


@dataclass(frozen=True, slots=True)
class LocatedCommand:
    """One command with one of its possible working directories."""

    words: Sequence[str]
    """Words as the shell would pass them; empty if they are not certain."""
    directory: str | None
    effects: Invocation

    @property
    def is_open(self) -> bool:
        """True if only the running shell knows the command's name, its directory or its targets."""
        if not self.words or self.directory is None or UNKNOWN in self.words[0]:
            return True
        effects = self.effects
        touched = (*(one.path for one in (*effects.writes, *effects.mentions)), *effects.code, effects.runs_in or "")
        return any(UNKNOWN in text or PIPE in text for text in touched)


class OpaqueCommandChecks:
    """Suspicions about the commands of one script and of everything it runs."""

    def __init__(self, paths: PathJudge, tool: str, expander: Expander) -> None:
        self._path_lookup = paths.path_lookup
        self._expander = expander
        self._forbidden = forbidden(rule for rule in paths.rules.rules if rule.applies_to(tool))
        self._strings: list[str] = []
        self._checked = 0
        self._why: str | None = None

    def add_script(self, script: Statement) -> None:
        """Collect the strings of a script that may become words of a command."""
        for text in collect_script_strings(script):
            self._strings.append(text)
            if "\\" in text:
                self._strings.append(_ESCAPE.sub(" ", text))  # As `printf` and `echo -e` print it.

    def about(
        self, command: SimpleCommand, given: Sequence[LocatedCommand], wrapping: Wrapping | None, step: ScriptStep
    ) -> Iterator[str]:
        """Return reasons to ask about a command that is not known to be read-only.

        Args:
            command: with a name.
            given: its words for each directory where it may run.
            wrapping: what it runs besides itself.
            step: the circumstances.
        """
        if named := self._named(command, given, wrapping, step):
            yield named
        if self._is_open(command, given, wrapping, step) and (why := self._protected_string()):
            yield f"it is unclear which files it changes, and the script names a protected path: {why}"

    def _named(
        self, command: SimpleCommand, given: Sequence[LocatedCommand], wrapping: Wrapping | None, step: ScriptStep
    ) -> str | None:
        """Return why a command may run one that a rule forbids: its words, its input or its variables name it."""
        if not self._forbidden:
            return None
        texts = [assignment.value.value for assignment in command.assignments]
        known = {tuple(one.words) for one in given if one.words} or {(command.name,)}
        if _is_judged(wrapping) and command.name != "git":
            known = {tuple(word.value for word in wrapping.own) if wrapping and wrapping.own else (command.name,)}
        else:
            texts += [code for one in given for code in one.effects.code]
            texts += self._input_of(command, step)
        if any(PIPE in word.value for word in (*command.words, *(one.value for one in command.assignments))):
            texts += self._strings
        for words in known:
            if found := find_indirect_command(words, texts, self._forbidden):
                return f"it may run {found[0]}, which the rule {found[1].shown} covers"
        return None

    def _input_of(self, command: SimpleCommand, step: ScriptStep) -> list[str]:
        """Return texts that a command may read as a program: its here-document and its pipeline's output."""
        if not reads_program_from_input([word.value for word in command.words]):
            return []
        return [command.heredoc or "", *(self._strings if step.is_fed else ())]

    def _is_open(
        self, command: SimpleCommand, given: Sequence[LocatedCommand], wrapping: Wrapping | None, step: ScriptStep
    ) -> bool:
        """True if only the running shell knows some of a command's arguments, or if its input may decide its effect."""
        if any(one.is_open for one in given):
            return True
        targets = (
            target
            for one in given
            for redirect in command.redirects
            for target in self._expander.expand(redirect.target, one.directory, step.bindings)
        )
        if (wrapping and wrapping.hidden) or any(UNKNOWN in target for target in targets):
            return True
        return (
            step.is_fed
            and not _is_judged(wrapping)
            and reads_program_from_input([word.value for word in command.words])
        )

    def _protected_string(self) -> str | None:
        """Return why a string of the scripts read so far names a protected path, or None."""
        while self._why is None and self._checked < len(self._strings):
            text = self._strings[self._checked]
            self._checked += 1
            self._why = next((why for piece in pieces_of(text) if (why := self._why_untouchable(piece))), None)
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
