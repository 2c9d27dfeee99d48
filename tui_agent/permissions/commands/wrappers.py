"""Commands that run other commands: finds the inner command, so that rules apply to it.

A wrapper with an unknown option hides its command: then nothing is allowed because of the apparent inner command, and
if any rule forbids commands, the policy asks.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from tui_agent.permissions.shell.expansion import expand_braces, has_glob
from tui_agent.permissions.shell.syntax import MARKS, PIPE, UNKNOWN, VARIABLE, Assignment, SimpleCommand, Word

from .argv import parse_arguments, split_options
from .awk_programs import awk_outputs
from .catalogue import SHELLS, CommandFacts, canonical_name, git_subcommand_at, matching_row
from .catalogue import wrapper as wrapper_of
from .find_words import find_roots, finds_only_files

MAX_ROOTS = 8
"""Maximum number of search roots passed to the commands that a `find` runs."""

RUNS_INPUT = "it runs its input"
_UNKNOWN_SCRIPT = "its commands are known only when it runs"
_JOINED = ("joined", "remote")
"""Kinds of wrappers that pass their words to a shell as one text."""
_COVERED = ("runner", "remote")
"""Kinds of wrappers for which a rule is meant to allow the command they run."""
_GIVEN = re.compile(r":{3,4}\+?\Z")
"""Separators before the words that `parallel` passes to its command."""
_NUMBER = re.compile(r"-\d+\Z")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=", re.DOTALL)
_CLEARING = re.compile(r"-\Z|-[0v]*[iu]|--(?:ignore-environment|unset)")
"""Options of `env` that remove variables."""
_EXEC_ACTIONS = ("-exec", "-execdir", "-ok", "-okdir")
_EXEC_ELSEWHERE = ("-execdir", "-okdir")
"""Actions that run a command in the directory of the match."""
_MARKER = re.compile(r"-[0rtpxo]*I(.*)\Z", re.DOTALL)
"""Option of `xargs` that replaces a marker with its input."""
_REVOKES_MARKER = re.compile(r"-[0rtpxo]*[nL]|--max")
_NAMES_SWITCH = re.compile(r"[-+]\w*[oO]\Z")
_SHELL_SWITCHES = re.compile(r"-[eux]*[cox]\Z|-[eux]+\Z")
_ONLY_BASH = re.compile(
    r"[{}~^]|\$['\"]|&>|>&\s*[^\s\d-]|\|&|[<>]\(|<<<|\[\[|\(\(|;;?&|\b(?:function|select|coproc|time)\b"
)
"""Syntax that another shell may read differently."""
_GIT_PROGRAM_SETTING = re.compile(
    r"(?i:core\.(?:pager|editor|sshcommand|fsmonitor|gitproxy|askpass|alternaterefscommand)|sequence\.editor|"
    r"diff\.external|pager\.[\w-]+|gpg\.(?:\w+\.)?program|"
    r"\S+\.(?:textconv|command|cmd|driver|helper|process|clean|smudge|path|uploadpack|receivepack|packobjectshook))=(.+)",
    re.DOTALL,
)
"""Settings of git that name a program."""
_SCRIPT_OPTIONS = {"su": "c", "script": "c", "runuser": "c", "flock": "c", "nix-shell": "run", "npm": "c", "npx": "c"}


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """A command inside another."""

    command: SimpleCommand
    at: int
    """Index of its first word in the outer command; a rule must spell out more words than this to cover it."""
    directory: Word | None = None
    """Directory that the wrapper changes to; None for the outer command's."""
    takes: Literal["nothing", "files", "paths", "lines"] = "nothing"
    """Values of its unknown words.

    `nothing` (none, or anything), `files` or any `paths` that `find` matches, or the `lines` that `xargs` reads.
    """


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Commands that a command runs besides itself."""

    is_transparent: bool
    """True if the inner command alone decides."""
    allows_inner: bool = False
    """True if a rule for the outer command covers the inner one."""
    inner_commands: tuple[InnerCommand, ...] = ()
    scripts: tuple[str, ...] = ()
    """Texts that a shell will read."""
    hidden: str | None = None
    """Reason why the inner command is unknown."""
    is_unknown: bool = False
    """True if only the running shell knows what it runs: a script with a value, the commands that it reads."""
    is_remote: bool = False
    """True if it runs them on another machine."""
    runs_file: bool = False
    """True if only the contents of a file that its words name are hidden."""
    own: tuple[Word, ...] = ()
    """Words that do not belong to the inner commands and scripts, as far as known."""
    allows_scripts: bool = False
    """True if a rule for the outer command covers its scripts, too."""


def expand_command_braces(command: SimpleCommand) -> SimpleCommand:
    """Return the command with its braces expanded, which may change its name."""
    if not any(word.live for word in command.words):
        return command
    words = tuple(expanded for word in command.words for expanded in expand_braces(word))
    return _with_words(command, words)


def unwrap(command: SimpleCommand) -> Wrapping | None:
    """Return the commands that `command` runs besides itself, or None if it is not known to run any."""
    if not command.words:
        return None
    name = command.name.rsplit("/", 1)[-1]
    if name in SHELLS:
        return _shell(command)
    if name == "eval":
        return _eval(command)
    if name == "trap":
        return _first_text(command, 1)
    if name == "find":
        return _find(command)
    if name in (".", "source"):
        return _file_of_commands(command.words[1:], "it runs a file's commands in this shell")
    if name == "alias":
        return _aliases(command)
    if name == "git":
        return _git(command)
    if canonical_name(name) == "awk":
        return _awk(command)
    found = _wrapper_of(command, name)
    return _unwrapped(command, name, *found) if found else None


def _wrapper_of(command: SimpleCommand, name: str) -> tuple[CommandFacts, int] | None:
    """Return the wrapper with the most words that the command begins with, and their number."""
    values = [name, *(word.value for word in command.words[1:3])]
    for count in (3, 2, 1):
        wrapper = wrapper_of(*values[:count])
        if wrapper is not None and len(values) >= count:
            return wrapper, count
    return None


def _unwrapped(command: SimpleCommand, name: str, wrapper: CommandFacts, at: int) -> Wrapping | None:
    words = command.words
    if name == "command" and any(word.value in ("-v", "-V") for word in words[1:2]):
        return None
    script = _script_option(command, name)
    if script is not None and not MARKS.isdisjoint(script):
        return _unknown()
    directory: Word | None = None
    clears = reads = False
    while at < len(words):
        taken = _option_words(words[at], wrapper)
        if taken == 0:
            break
        if taken < 0 or at + taken > len(words) or not all(_is_one_word(word) for word in words[at + 1 : at + taken]):
            return replace(_hidden(script), is_remote=wrapper.runs == "remote")
        directory = _directory(wrapper, words[at : at + taken]) or directory
        reads = reads or _reads_file(wrapper, words[at].value)
        # The settings that make git harmless for read-only commands are environment variables.
        clears = clears or (name == "env" and bool(_CLEARING.match(words[at].value)))
        at += taken
        if words[at - 1].value == "--":
            break
    own_end = at + wrapper.own_words
    if not all(_is_settled(word) for word in words[at:own_end]):
        return replace(_hidden(script), is_remote=wrapper.runs == "remote")
    at = own_end
    if wrapper.own_words and at < len(words) and words[at].value == "--":
        at += 1
    if wrapper.runs in _JOINED:
        return _joined(name, wrapper, words, at, script)
    assignments: list[Assignment] = []
    while (wrapper.assigns or name == "time") and at < len(words):
        if not _is_settled(words[at]) and "=" in words[at].value:
            return _hidden(script)
        match = _ASSIGNMENT.match(words[at].value)
        if match is None:
            break
        assignments.append(Assignment(match.group(1), Word(words[at].value[match.end() :]), words[at].text))
        at += 1
    is_transparent = wrapper.runs == "transparent" and is_trusted_name(command.name) and not (clears or reads)
    inner_commands: tuple[InnerCommand, ...] = ()
    if inner_words := words[at:]:
        if wrapper.is_open:
            inner_words = _opened(command, inner_words)
        inner = SimpleCommand(_text_of(inner_words), inner_words, tuple(assignments), heredoc=command.heredoc)
        inner_commands = (InnerCommand(inner, at, directory, "lines" if wrapper.is_open else "nothing"),)
    scripts = (script,) if script else ()
    own = words[:at]
    return (
        Wrapping(is_transparent, wrapper.runs in _COVERED, inner_commands, scripts, own=own)
        if inner_commands or scripts or wrapper.is_open
        else None
    )


def _joined(name: str, wrapper: CommandFacts, words: tuple[Word, ...], at: int, script: str | None) -> Wrapping | None:
    """Return the command that a wrapper passes to a shell as one text, beginning at `at`."""
    own, words = words[:at], words[at:]
    values = [word.value for word in words]
    stop = (
        next((at for at, value in enumerate(values) if _GIVEN.match(value)), len(values)) if wrapper.is_open else None
    )
    texts = [" ".join(values[:stop])]
    if name == "sg" and values[:1] == ["-c"]:
        texts = [" ".join(values[1:])]
    if wrapper.is_open and texts == [""]:
        texts = values[(stop or 0) + 1 :]
        if not texts:
            return _unknown(RUNS_INPUT)
    elif wrapper.is_open:
        texts = [texts[0].replace("{}", '"$@"') if "{}" in texts[0] else f'{texts[0]} "$@"']
    if not values and not script:
        return None
    if not all(word.is_fixed and not word.live for word in words):
        found = _hidden(script)
        is_remote = wrapper.runs == "remote"
        is_unknown = not is_remote and not all(word.is_fixed for word in words)
        return replace(found, hidden=_UNKNOWN_SCRIPT, is_unknown=is_unknown, is_remote=is_remote)
    return Wrapping(
        is_transparent=False,
        allows_inner=wrapper.runs in _COVERED,
        scripts=(*texts, *((script,) if script else ())),
        is_remote=wrapper.runs == "remote",
        own=(*own, *(words[stop:] if stop is not None else ())),
        allows_scripts=wrapper.runs in _COVERED,
    )


def is_trusted_name(name: str) -> bool:
    """True if a command's name means the system's program or a shell built-in, not some file."""
    return "/" not in name or name.rpartition("/")[0] in ("/bin", "/usr/bin")


def _is_settled(word: Word) -> bool:
    """True if a word certainly is exactly one word, with exactly this value."""
    return word.is_fixed and not has_glob(word)


def _is_one_word(word: Word) -> bool:
    """True if a word certainly is exactly one word, with any value."""
    fixed = all(variable.quoted for variable in word.variables) and UNKNOWN not in word.value and PIPE not in word.value
    return fixed and not has_glob(word)


def _directory(wrapper: CommandFacts, words: tuple[Word, ...]) -> Word | None:
    """Return the directory that an option such as `env -C` changes to."""
    split = split_options(wrapper, words[0].value)
    if split is None or wrapper.options[split.last] != "directory":
        return None
    return words[-1] if split.takes_next else Word(split.value or "")


def _reads_file(wrapper: CommandFacts, word: str) -> bool:
    """True if an option such as `xargs -a` reads a file."""
    split = split_options(wrapper, word)
    return split is not None and wrapper.options[split.last] == "read"


def _option_words(word: Word, wrapper: CommandFacts) -> int:
    """Return the number of words of an option: 0 if the word is not an option, -1 if it is unknown."""
    value = word.value
    if value == "-":
        return 1 if wrapper.assigns else 0
    if not value.startswith("-"):
        return 0
    if not _is_settled(word):
        return -1
    if value == "--" or (_NUMBER.match(value) and "-n" in wrapper.options):
        return 1  # `nice -5` is `nice -n 5`.
    if value.partition("=")[0] in wrapper.harmless and value.startswith("--") and "=" in value:
        return 1  # Such as `--rm=true`, where the value of a flag is optional.
    split = split_options(wrapper, value)
    if split is None or not {*split.flags, split.last} <= wrapper.harmless:
        return -1
    return 2 if split.takes_next else 1


def _opened(command: SimpleCommand, inner_words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the command of `xargs`: more words follow, or replace the marker of `-I`."""
    options = command.words[1 : len(command.words) - len(inner_words)]
    markers = [
        found.group(1) or (following.value if following else "")
        for word, following in zip(options, (*options[1:], None), strict=False)
        if (found := _MARKER.match(word.value))
    ]
    if not markers:
        return (*inner_words, Word(UNKNOWN))
    if len(markers) > 1 or not markers[0] or any(_REVOKES_MARKER.match(word.value) for word in options):
        # With several markers, or an option that overrides them, the words are uncertain.
        return tuple(Word(VARIABLE) for _ in (*inner_words, markers))
    return tuple(_marked(word, markers[0]) for word in inner_words)


def _marked(word: Word, marker: str) -> Word:
    if marker not in word.value:
        return word
    return Word(VARIABLE) if has_glob(word) else Word(word.value.replace(marker, UNKNOWN))


def _shell(command: SimpleCommand) -> Wrapping:
    found = _shell_of_any_kind(command)
    # A shell that only runs one readable script adds nothing to it, so the script alone decides.
    is_plain = found.hidden is None and len(found.scripts) == 1 and _runs_only_script(command, found.scripts[0])
    return replace(found, is_transparent=True) if is_plain else found


def _runs_only_script(command: SimpleCommand, script: str) -> bool:
    """True if a shell runs exactly this script as parsed here, without start files."""
    name = command.name.rpartition("/")[2]
    words = [word.value if _is_settled(word) else "" for word in command.words[1:]]
    while words and words[0] != script:
        option = words.pop(0)
        if _SHELL_SWITCHES.match(option) and option.endswith("o"):
            option = words.pop(0) if words else ""
            if option not in ("pipefail", "errexit", "nounset"):
                return False
        elif not _SHELL_SWITCHES.match(option):
            return False
    return is_trusted_name(command.name) and (name == "bash" or (name == "sh" and not _ONLY_BASH.search(script)))


def _shell_of_any_kind(command: SimpleCommand) -> Wrapping:
    words = command.words[1:]
    for at, word in enumerate(words):
        value = word.value
        if not word.is_fixed:
            return _hidden()
        # `-c` may be joined with other letters, as in `bash -lc`.
        if value.startswith("-") and not value.startswith("--") and "c" in value[1:]:
            return _script_at(words, at + 1)
        if not value.startswith(("-", "+")):
            before = words[at - 1].value if at else ""
            if before not in ("--rcfile", "--init-file") and not _NAMES_SWITCH.match(before):
                return _file_of_commands(words[at : at + 1], "it runs a file of commands")
    if command.heredoc is not None:
        found = _unknown(RUNS_INPUT, command.heredoc)
        return replace(found, is_unknown=not MARKS.isdisjoint(command.heredoc))
    if any(redirect.operator == "<" for redirect in command.redirects):
        return _file_of_commands((), RUNS_INPUT)
    return _unknown(RUNS_INPUT)


def _script_at(words: tuple[Word, ...], at: int) -> Wrapping:
    """Return the script of `-c`: the next word that is not an option."""
    while at < len(words) and words[at].value.startswith(("-", "+")) and words[at].is_fixed:
        at += 2 if words[at].value in ("-o", "+o", "-O", "+O") else 1
    if at < len(words) and words[at].is_fixed and not words[at].live:
        return Wrapping(is_transparent=False, scripts=(words[at].value,))
    if at < len(words) and words[at].is_fixed:
        return replace(_unknown("the shell may change its script first", words[at].value), is_unknown=False)
    return _unknown()


def _eval(command: SimpleCommand) -> Wrapping | None:
    words = command.words[1:]
    if all(word.is_fixed and not word.live for word in words):
        return Wrapping(is_transparent=False, scripts=(" ".join(word.value for word in words),)) if words else None
    return replace(_unknown(), is_unknown=not all(word.is_fixed for word in words))


def _first_text(command: SimpleCommand, at: int) -> Wrapping | None:
    if len(command.words) <= at:
        return None
    word = command.words[at]
    if not word.is_fixed:
        return _unknown()
    return None if word.value.startswith("-") else Wrapping(is_transparent=False, scripts=(word.value,))


def _awk(command: SimpleCommand) -> Wrapping | None:
    found = awk_outputs([word.value for word in command.words])
    if found.is_open:
        return _unknown(_UNKNOWN_SCRIPT, *found.scripts)
    return Wrapping(is_transparent=False, scripts=found.scripts) if found.scripts else None


def _aliases(command: SimpleCommand) -> Wrapping:
    scripts = tuple(word.value.partition("=")[2] for word in command.words[1:] if "=" in word.value and word.is_fixed)
    return Wrapping(is_transparent=False, scripts=scripts, hidden="it redefines the name of a command")


def _find(command: SimpleCommand) -> Wrapping | None:
    """Return the commands of `-exec` and similar actions; `{}` is a path below the roots of the search."""
    inner_commands: list[InnerCommand] = []
    words = command.words
    values = [word.value for word in words]
    roots = find_roots(values)[:MAX_ROOTS]
    found = tuple(Word(f"{root}/{UNKNOWN}", text="{}") for root in roots)
    # The match may be in a root itself, which may be protected, or anywhere below it.
    elsewhere = (*(Word(root) for root in roots), Word(UNKNOWN))
    takes = "files" if finds_only_files(values) else "paths"
    at = 1
    while at < len(words):
        if values[at] not in _EXEC_ACTIONS:
            at += 1
            continue
        directories = elsewhere if values[at] in _EXEC_ELSEWHERE else (None,)
        start = at = at + 1
        while at < len(words) and values[at] != ";" and not (values[at] == "+" and values[at - 1] == "{}"):
            at += 1
        if inner_words := words[start:at]:
            filled = tuple(part for word in inner_words for part in _filled(word, found))
            inner = SimpleCommand(_text_of(inner_words), filled)
            taken = takes if takes == "files" or values[start - 1] not in _EXEC_ELSEWHERE else "nothing"
            inner_commands.extend(InnerCommand(inner, start, directory, taken) for directory in directories)
    return Wrapping(is_transparent=False, inner_commands=tuple(inner_commands)) if inner_commands else None


def _filled(word: Word, found: tuple[Word, ...]) -> tuple[Word, ...]:
    if word.value == "{}":
        return found
    return (Word(word.value.replace("{}", UNKNOWN), text=word.text),) if "{}" in word.value else (word,)


def _git(command: SimpleCommand) -> Wrapping | None:
    """Return the programs that git runs: `bisect run`, `submodule foreach`, `rebase --exec`, an alias set with `-c`."""
    words = command.words
    values = [word.value for word in words]
    at = git_subcommand_at(values)
    action = next((place for place in range(at + 1, len(values)) if not values[place].startswith("-")), at)
    if (values[at : at + 1], values[action : action + 1]) in ((["bisect"], ["run"]), (["submodule"], ["foreach"])):
        first = next(
            (place for place in range(action + 1, len(values)) if not values[place].startswith("--")), len(values)
        )
        if rest := words[first:]:
            if values[at] == "submodule" and len(rest) == 1 and rest[0].is_fixed:
                return Wrapping(is_transparent=False, scripts=(rest[0].value,))
            inner = SimpleCommand(_text_of(rest), rest)
            return Wrapping(is_transparent=False, inner_commands=(InnerCommand(inner, first),))
    programs = [
        setting.group(1)
        for before, value in pairwise(values[: at + 1])
        if before == "-c" and (setting := _GIT_PROGRAM_SETTING.match(value))
    ]
    programs += [value.partition("!")[2] for value in values[1:at] if "=!" in value.replace(" ", "")]
    if found := matching_row(values):
        programs += parse_arguments(*found).code
    known = tuple(program for program in programs if program and MARKS.isdisjoint(program))
    if any(not MARKS.isdisjoint(program) for program in programs):
        return _unknown(_UNKNOWN_SCRIPT, *known)
    return Wrapping(is_transparent=False, scripts=known) if known else None


def _script_option(command: SimpleCommand, name: str) -> str | None:
    """Return the text after `-c`, for wrappers that take either a command or a text."""
    letter = _SCRIPT_OPTIONS.get(name)
    if letter is None:
        return None
    for at, word in enumerate(command.words[1:], start=1):
        following = command.words[at + 1 : at + 2]
        joined = re.match(rf"-[A-Za-z]*{letter}(.*)\Z|--(?:{letter}|command|call)(?:=(.*))?\Z", word.value, re.DOTALL)
        text = joined and (joined.group(1) or joined.group(2) or next((one.value for one in following), None))
        if joined and text:
            return text
    return None


def _unknown(why: str = _UNKNOWN_SCRIPT, *scripts: str) -> Wrapping:
    """Return the result for commands that only the running shell knows, and the scripts that are known beside them."""
    return Wrapping(is_transparent=False, scripts=scripts, hidden=why, is_unknown=True)


def _file_of_commands(words: Sequence[Word], why: str) -> Wrapping:
    """Return the result for a file of commands; what `<(…)` prints is none."""
    is_piped = any(PIPE in word.value for word in words)
    return Wrapping(is_transparent=False, hidden=why, is_unknown=is_piped, runs_file=True)


def _hidden(script: str | None = None) -> Wrapping:
    """Return the result for unknown options: the command may begin anywhere after them."""
    return Wrapping(
        is_transparent=False, scripts=(script,) if script else (), hidden="tui-agent does not know its options"
    )


def _with_words(command: SimpleCommand, words: tuple[Word, ...]) -> SimpleCommand:
    return SimpleCommand(command.text, words, command.assignments, command.redirects, command.heredoc, command.nested)


def _text_of(words: tuple[Word, ...]) -> str:
    return " ".join(word.text or word.value.replace(UNKNOWN, "…") for word in words)
