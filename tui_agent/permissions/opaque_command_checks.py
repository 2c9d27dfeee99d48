"""What a command may do that its own words do not tell: run what a rule forbids, change what is protected.

Both are only suspected, so a person is asked: where a rule forbids a command that another one's words or input name,
and where a script names a protected place and something in it gets words that only the running shell knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .indirect_commands import find_indirect_command, forbidden, reads_program_from_input
from .path_judge import PathJudge
from .protected_paths import may_mean_protected, protected_name
from .read_only_options import is_known
from .script_strings import collect_script_strings
from .shell_effects import pieces_of
from .shell_expansion import Expander
from .shell_flow import ScriptStep
from .shell_syntax import PIPE, UNKNOWN, SimpleCommand, Statement
from .shell_wrappers import Wrapping
from .subcommand_effects import Effects


@dataclass(frozen=True, slots=True)
class LocatedCommand:
    """A command in one of the places where it may run."""

    words: Sequence[str]
    """As the shell would pass them on; none: it is not certain which."""
    directory: str | None
    effects: Effects
    """What they tell of its effects."""

    @property
    def is_open(self) -> bool:
        """Whether only the running shell knows what it is, where it runs or what it may change."""
        if not self.words or self.directory is None or UNKNOWN in self.words[0]:
            return True
        effects = self.effects
        touched = (*(one.path for one in (*effects.writes, *effects.mentions)), *effects.code, effects.runs_in or "")
        return any(UNKNOWN in text or PIPE in text for text in touched)


class OpaqueCommandChecks:
    """OpaqueCommandChecks about the commands of one script with everything that it runs."""

    def __init__(self, paths: PathJudge, tool: str, expander: Expander) -> None:
        self._path_lookup = paths.path_lookup
        self._expander = expander
        self._forbidden = forbidden(rule for rule in paths.rules.rules if rule.applies_to(tool))
        self._script_strings: list[str] = []
        self._looked_at = 0
        self._why: str | None = None

    def add_script(self, script: Statement) -> None:
        """Takes note of what a script says that may come to be words of a command."""
        self._script_strings.extend(collect_script_strings(script))

    def about(
        self, command: SimpleCommand, given: Sequence[LocatedCommand], wrapping: Wrapping | None, step: ScriptStep
    ) -> Iterator[str]:
        """Reasons to ask about a command that is not known to only read.

        Args:
            command: with a name.
            given: its words in each place where it may run.
            wrapping: what it runs besides itself.
            step: the circumstances.
        """
        if named := self._named(command, given, wrapping, step):
            yield named
        if self._is_open(command, given, wrapping, step) and (why := self._protected_string()):
            yield f"what it changes is not certain, and the script names a place that is protected: {why}"

    def _named(
        self, command: SimpleCommand, given: Sequence[LocatedCommand], wrapping: Wrapping | None, step: ScriptStep
    ) -> str | None:
        """What rules forbid and a command may run, because its words, its input or what it sets name it."""
        if not self._forbidden:
            return None
        texts = [assignment.value.value for assignment in command.assignments]
        known = {tuple(one.words) for one in given if one.words} or {(command.name,)}
        if _is_seen(wrapping) and command.name != "git":
            known = {tuple(word.value for word in wrapping.own) if wrapping and wrapping.own else (command.name,)}
        else:
            texts += [code for one in given for code in one.effects.code]
            texts += self._input_of(command, step)
        if any(PIPE in word.value for word in (*command.words, *(one.value for one in command.assignments))):
            texts += self._script_strings
        for words in known:
            if found := find_indirect_command(words, texts, self._forbidden):
                return f"it may run {found[0]}, about which there is the rule {found[1].shown}"
        return None

    def _input_of(self, command: SimpleCommand, step: ScriptStep) -> list[str]:
        """What a command may read as a program: its here-document, what comes before it in a pipeline."""
        if not reads_program_from_input([word.value for word in command.words]):
            return []
        return [command.heredoc or "", *(self._script_strings if step.is_fed else ())]

    def _is_open(
        self, command: SimpleCommand, given: Sequence[LocatedCommand], wrapping: Wrapping | None, step: ScriptStep
    ) -> bool:
        """Whether only the running shell knows some of what a command is given, or its input may say what it does."""
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
            step.is_fed and not _is_seen(wrapping) and reads_program_from_input([word.value for word in command.words])
        )

    def _protected_string(self) -> str | None:
        """What protected place the scripts name that were read so far; None if none."""
        while self._why is None and self._looked_at < len(self._script_strings):
            text = self._script_strings[self._looked_at]
            self._looked_at += 1
            self._why = next((why for piece in pieces_of(text) if (why := self._why_untouchable(piece))), None)
        return self._why

    def _why_untouchable(self, piece: str) -> str | None:
        if why := protected_name(piece) or self._path_lookup.may_be_private(piece.split("/")):
            return why
        if any(may_mean_protected(name) for name in piece.split("/")):
            return f"{piece} may mean one"
        return self._path_lookup.look(piece).private if piece.startswith(("/", "~")) and is_known(piece) else None


def _is_seen(wrapping: Wrapping | None) -> bool:
    """Whether all that a command runs is judged by itself."""
    return wrapping is not None and bool(wrapping.inner_commands or wrapping.scripts) and not wrapping.hidden
