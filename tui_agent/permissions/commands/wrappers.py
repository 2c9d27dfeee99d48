"""Commands that run other commands: finds the inner command, so that rules apply to it.

A wrapper with an unknown option hides its command: then nothing is allowed because of the apparent inner command, and
if any rule forbids commands, the policy asks.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tui_agent.permissions.shell.expansion import expand_braces, has_glob
from tui_agent.permissions.shell.syntax import MARKS, PIPE, UNKNOWN, VARIABLE, Assignment, SimpleCommand, Word, names

from .argv import Arguments, arguments_of, parse_arguments, split_options
from .catalogue import (
    SHELLS,
    CommandFacts,
    canonical_name,
    group,
    is_trusted_name,
    pairs,
    subcommand_at,
    words_by_program,
)
from .catalogue import wrapper as wrapper_of
from .searches import ELSEWHERE, find_roots, find_runs, finds_only_files
from .text_scripts import awk_outputs
from .version_control import programs_in

MAX_ROOTS = 8
"""Maximum number of search roots passed to the commands that a `find` runs."""

RUNS_INPUT = "it runs its input"
_UNKNOWN_SCRIPT = "its commands are known only when it runs"
_UNKNOWN_OPTIONS = "tui-agent does not know its options"
"""Reason for options after which the inner command may begin anywhere."""
_JOINED = ("joined", "remote")
"""Kinds of wrappers that pass their words to a shell as one text."""
_COVERED = ("runner", "remote")
"""Kinds of wrappers for which a rule is meant to allow the command they run."""
_ASSIGNMENT = re.compile(r"([^=]+)=", re.DOTALL)
"""An assignment of `env` and the like, which take any name."""
_REVOKING = ("-n", "-L", "--max-args", "--max-lines", "--max-procs", "--max-chars")
"""Options of `xargs` that may override the marker of `-I`."""
_TAKES_NEXT = re.compile(r"[-+]\w*[oO]\Z|--(?:rcfile|init-file)\Z")
"""Options of shells whose value is the next word."""
_SHELL_SWITCHES = re.compile(r"-[eux]*[cox]\Z|-[eux]+\Z")
_SHELL_SETTINGS = names("pipefail errexit nounset")
_ONLY_BASH = re.compile(
    r"[{}~^]|\$['\"]|&>|>&\s*[^\s\d-]|\|&|[<>]\(|<<<|\[\[|\(\(|;;?&|\b(?:function|select|coproc|time)\b"
)
"""Syntax that another shell may read differently."""
_SHELL_ESCAPE = re.compile(
    r"(?<![A-Za-z])!(?!=)|\br(?:ea?d?)?!|\\(?:x21|0?41)"
    r"|(?:\A|[\n;|:])\s*(?:platform\s+)?(?:shell|system|pipe|term(?:inal)?)\b|(?:\A|\n)\s*\||(?:\A|\n)\s*\.s(?:he?l?|ys?t?e?)\b|\.(?:shell|system)\b"
    r"|\b(?:system(?:list)?|job_start|term_start|termopen|edit|execute)\s*\("
    r"|(?:\.(?:o|import|read|excel|log)\w*|\\[ogw]x?)\b[^\n]*?[\"'\s]\||\bprogram\s*'",
    re.IGNORECASE,
)
"""Text with which editors and clients run shell commands."""


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

    is_transparent: bool = False
    """True if the inner command alone decides."""
    allows_inner: bool = False
    """True if a rule for the outer command covers its inner commands and scripts."""
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


def expand_command_braces(command: SimpleCommand) -> SimpleCommand:
    """Return the command with its braces expanded, which may change its name."""
    if not any(word.live for word in command.words):
        return command
    return replace(command, words=tuple(expanded for word in command.words for expanded in expand_braces(word)))


def unwrap(command: SimpleCommand) -> Wrapping | None:
    """Return the commands that `command` runs besides itself, or None if it is not known to run any."""
    if not command.words:
        return None
    name = command.name.rsplit("/", 1)[-1]
    texts = [*(word.value for word in command.words[1:]), *((command.heredoc,) if command.heredoc else ())]
    if has_shell_escape(name, texts):
        return _unknown()
    if special := _shell if name in SHELLS else _SPECIAL.get(name) or _SPECIAL.get(canonical_name(name)):
        return special(command)
    # The row with the most words that the command begins with, options left out.
    values = [word.value for word in command.words]
    start = subcommand_at(values)
    places = [0, *(at for at in range(start, len(values)) if not values[at].startswith("-"))][:3]
    for count in range(len(places), 0, -1):
        if (row := wrapper_of(name, *(values[at] for at in places[1:count]))) is not None:
            found = _unwrapped(command, name, row, places[count - 1] + 1)
            # Not only the row tells what a subcommand of version control changes.
            return replace(found, own=()) if found and canonical_name(name) in group("version_control") else found
    return _running(programs_in(values)) if name in group("version_control") else None


def has_shell_escape(word: str, texts: Iterable[str]) -> bool:
    """True if a command of this name runs shell commands in texts that are its words or its input."""
    return canonical_name(word) in group("shell_escapes") and any(map(_SHELL_ESCAPE.search, texts))


def splits_at_nul(outer: SimpleCommand) -> bool | None:
    """True if `xargs` splits its input at NUL characters, False if at blanks, None if it reads other input."""
    wrapping = unwrap(outer)
    own = wrapping.own if wrapping is not None and wrapping.own else outer.words
    found = arguments_of([word.value for word in own])
    others = {*found.given.get("-d", ()), *found.given.get("--delimiter", ())} - {"\\n", "\n"}
    return None if others or found.has("-a", "--arg-file") else found.has("-0", "--null")


def _unwrapped(command: SimpleCommand, name: str, row: CommandFacts, at: int) -> Wrapping | None:
    words = command.words
    if name == "command" and any(word.value in ("-v", "-V") for word in words[1:2]):
        return None
    scripts = _scripts(name, row, [word.value for word in words[1:]])
    if any(not MARKS.isdisjoint(script) for script in scripts):
        return _unknown()
    hidden = Wrapping(scripts=scripts, hidden=_UNKNOWN_OPTIONS, is_remote=row.runs == "remote")
    options = _options(words[at:], row)
    found = parse_arguments(row, [word.value for word in options])
    # A value need not be known, if it is one word.
    certain = parse_arguments(row, [word.value.replace(VARIABLE, "x") for word in options])
    is_one_each = all(_is_one_word(word) for word in options)
    if not certain.is_exact or not is_one_each or any("-" in word.value[:1] and not word.is_fixed for word in options):
        return hidden
    # `xargs -a` reads a file, and variables that `env` removes make read-only commands harmless.
    is_clearing = name == "env" and not {"-i", "-u", "--ignore-environment", "--unset"}.isdisjoint(found.flags)
    is_clearing = is_clearing or "-" in found.operands
    is_plain = row.runs == "transparent" and is_trusted_name(command.name)
    is_plain = is_plain and not found.of("read") and not is_clearing
    at += len(options)
    own_end = at + row.own_words
    if not all(_is_settled(word) for word in words[at:own_end]):
        return hidden
    at = own_end + (row.own_words > 0 and own_end < len(words) and words[own_end].value == "--")
    if row.runs in _JOINED:
        return _joined(name, row, words, at, scripts)
    assignments: list[Assignment] = []
    while (row.assigns or name == "time") and at < len(words):
        if not _is_settled(words[at]) and "=" in words[at].value:
            return hidden
        match = _ASSIGNMENT.match(words[at].value)
        if match is None or (name == "time" and not match.group(1).isidentifier()):
            break
        assignments.append(Assignment(match.group(1), Word(words[at].value[match.end() :]), words[at].text))
        at += 1
    inner: tuple[InnerCommand, ...] = ()
    if inner_words := words[at:]:
        inner_words = _opened(found, inner_words) if row.is_open else inner_words
        directory = Word(found.directory) if found.directory is not None else None
        run = SimpleCommand(_text_of(inner_words), inner_words, tuple(assignments), heredoc=command.heredoc)
        inner = (InnerCommand(run, at, directory, "lines" if row.is_open else "nothing"),)
    if not (inner or scripts or row.is_open):
        return None
    return Wrapping(is_plain, row.runs in _COVERED and not scripts, inner, scripts, own=words[:at])


def _scripts(name: str, row: CommandFacts, values: Sequence[str]) -> tuple[str, ...]:
    """Return the texts for a shell in a wrapper's options."""
    found = parse_arguments(row, values)
    options = words_by_program("script_options").get(name, ())
    texts = [text for option in options for text in found.given.get(option, ()) if text]
    # The words behind the text of `env` are more words of the same command.
    more = map(shlex.quote, found.operands) if name == "env" else ()
    return tuple(" ".join((text, *more)) for text in texts)


def _joined(
    name: str, row: CommandFacts, words: tuple[Word, ...], at: int, scripts: tuple[str, ...]
) -> Wrapping | None:
    """Return the command that a wrapper passes to a shell as one text, beginning at `at`."""
    own, words, is_remote = words[:at], words[at:], row.runs == "remote"
    values = [word.value for word in words]
    if not all(word.is_fixed and not word.live for word in words):
        is_unknown = not is_remote and not all(word.is_fixed for word in words)
        return Wrapping(scripts=scripts, hidden=_UNKNOWN_SCRIPT, is_unknown=is_unknown, is_remote=is_remote)
    if row.is_open:
        # `parallel` adds each of the words behind `:::`, or of its input, to its command, or runs them without one.
        given = next((at for at, value in enumerate(values) if value.startswith(":::")), len(values))
        command = values[:given] if "{}" in "".join(values[:given]) or not given else [*values[:given], "{}"]
        texts = [" ".join(command).replace("{}", '"$@"'), *values[given + 1 :]]
        return _unknown(_UNKNOWN_SCRIPT if values else RUNS_INPUT, *filter(None, texts))
    if not values and not scripts:
        return None
    text = " ".join(values[name == "sg" and values[:1] == ["-c"] :])
    is_covered = row.runs in _COVERED and not scripts
    return Wrapping(allows_inner=is_covered, scripts=(text, *scripts), is_remote=is_remote, own=own)


def _is_settled(word: Word) -> bool:
    """True if a word certainly is exactly one word, with exactly this value."""
    return word.is_fixed and not has_glob(word)


def _is_one_word(word: Word) -> bool:
    """True if a word certainly is exactly one word, with any value."""
    fixed = all(variable.quoted for variable in word.variables) and UNKNOWN not in word.value and PIPE not in word.value
    return fixed and not has_glob(word)


def _options(words: Sequence[Word], row: CommandFacts) -> Sequence[Word]:
    """Return the words before the first operand."""
    at = 0
    # `-` is an option of `env` and the like.
    while at < len(words) and words[at].value.startswith("-") and (words[at].value != "-" or row.assigns):
        split = split_options(row, words[at].value)
        at += 1 + (split is not None and split.takes_next)
        if split is None and words[at - 1].value == "--":
            break
    return words[:at]


def _opened(found: Arguments, inner_words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the command of `xargs`: more words follow, or replace the marker of `-I`."""
    markers = found.given.get("-I", [])
    if not markers:
        return (*inner_words, Word(UNKNOWN))
    if len(markers) > 1 or not markers[0] or found.has(*_REVOKING):
        # With several markers, or an option that overrides them, the words are uncertain.
        return tuple(Word(VARIABLE) for _ in (*inner_words, markers))
    filled = (
        Word(VARIABLE) if has_glob(word) else Word(word.value.replace(markers[0], UNKNOWN)) for word in inner_words
    )
    return tuple(new if markers[0] in word.value else word for new, word in zip(filled, inner_words, strict=True))


def _shell(command: SimpleCommand) -> Wrapping:
    """Return the script or the file of a shell; one that only runs a readable script leaves the decision to it."""
    name, words = command.name.rpartition("/")[2], command.words
    at = 1
    while at < len(words) and (words[at].value.startswith(("-", "+")) or _TAKES_NEXT.match(words[at - 1].value)):
        at += 1
    options = [word for word in words[1:at] if word.value.startswith(("-", "+"))]
    # `-c` may be joined with other letters, as in `bash -lc`.
    takes_script = any(re.match("-[^-]*c", word.value) for word in options)
    if not all(word.is_fixed for word in words[1 : at + 1]):
        return _unknown() if takes_script else Wrapping(hidden=_UNKNOWN_OPTIONS)
    if any(word.value not in _SHELL_SETTINGS for word in words[1:at] if word not in options):
        return _unknown()  # Such as `-O dotglob`, or a file of commands.
    if at < len(words) and not takes_script:
        return _file_of_commands(words[at : at + 1], "it runs a file of commands")
    if at < len(words):
        script = words[at]
        if script.live:
            return replace(_unknown("the shell may change its script first", script.value), is_unknown=False)
        is_plain = all(_is_settled(word) and _SHELL_SWITCHES.match(word.value) for word in options)
        is_read = name == "bash" or (name == "sh" and not _ONLY_BASH.search(script.value))
        return Wrapping(is_plain and is_read and is_trusted_name(command.name), scripts=(script.value,))
    if takes_script:
        return _unknown()
    if command.heredoc is not None:
        found = _unknown(RUNS_INPUT, command.heredoc)
        return replace(found, is_unknown=not MARKS.isdisjoint(command.heredoc))
    is_file = any(redirect.operator == "<" for redirect in command.redirects)
    return _file_of_commands((), RUNS_INPUT) if is_file else _unknown(RUNS_INPUT)


def _find(command: SimpleCommand) -> Wrapping | None:
    """Return the commands of `-exec` and similar actions; `{}` is a path below the roots of the search."""
    inner_commands: list[InnerCommand] = []
    values = [word.value for word in command.words]
    roots = find_roots(values)[:MAX_ROOTS]
    found = tuple(Word(f"{root}/{UNKNOWN}", text="{}") for root in roots)
    # The match may be in a root itself, which may be protected, or anywhere below it.
    elsewhere = (*(Word(root) for root in roots), Word(UNKNOWN))
    takes = "files" if finds_only_files(values) else "paths"
    for run in find_runs(values):
        is_elsewhere = run.action in ELSEWHERE
        if inner_words := command.words[run.at : run.end]:
            filled = tuple(part for word in inner_words for part in _filled(word, found))
            inner = SimpleCommand(_text_of(inner_words), filled)
            taken = takes if takes == "files" or not is_elsewhere else "nothing"
            inner_commands += [
                InnerCommand(inner, run.at, one, taken) for one in (elsewhere if is_elsewhere else (None,))
            ]
    return Wrapping(inner_commands=tuple(inner_commands)) if inner_commands else None


def _filled(word: Word, found: tuple[Word, ...]) -> tuple[Word, ...]:
    if word.value == "{}":
        return found
    return (Word(word.value.replace("{}", UNKNOWN), text=word.text),) if "{}" in word.value else (word,)


def _awk(command: SimpleCommand) -> Wrapping | None:
    found = awk_outputs([word.value for word in command.words])
    return _running([*found.scripts, *((UNKNOWN,) if found.is_open else ())])


def _running(programs: Sequence[str]) -> Wrapping | None:
    """Return the result for programs that a shell runs, some of them perhaps unknown."""
    known = tuple(program for program in programs if program and MARKS.isdisjoint(program))
    if not all(map(MARKS.isdisjoint, programs)):
        return _unknown(_UNKNOWN_SCRIPT, *known)
    return Wrapping(scripts=known) if known else None


def _cmake(command: SimpleCommand) -> Wrapping | None:
    """Return the command behind `-E`, one of cmake's own that does what a usual one does."""
    words = command.words
    at = next((at for at, word in enumerate(words[1:], start=2) if word.value == "-E"), len(words))
    if at == len(words):
        return None
    usual = next((usual for names, usual in pairs("cmake_commands") if words[at].value in names.split()), None)
    inner_words = (*(map(Word, usual.split()) if usual else words[at : at + 1]), *words[at + 1 :])
    run = SimpleCommand(_text_of(inner_words), inner_words, heredoc=command.heredoc)
    return Wrapping(inner_commands=(InnerCommand(run, at),), own=words[:at])


def _trap(command: SimpleCommand) -> Wrapping | None:
    word = command.words[1] if len(command.words) > 1 else Word("-")
    if not word.is_fixed:
        return _unknown()
    return None if word.value.startswith("-") else Wrapping(scripts=(word.value,))


def _eval(command: SimpleCommand) -> Wrapping | None:
    words = command.words[1:]
    if all(word.is_fixed and not word.live for word in words):
        return Wrapping(scripts=(" ".join(word.value for word in words),)) if words else None
    return replace(_unknown(), is_unknown=not all(word.is_fixed for word in words))


def _alias(command: SimpleCommand) -> Wrapping:
    scripts = tuple(word.value.partition("=")[2] for word in command.words[1:] if "=" in word.value and word.is_fixed)
    return Wrapping(scripts=scripts, hidden="it redefines the name of a command")


def _source(command: SimpleCommand) -> Wrapping:
    return _file_of_commands(command.words[1:], "it runs a file's commands in this shell")


def _unknown(why: str = _UNKNOWN_SCRIPT, *scripts: str) -> Wrapping:
    """Return the result for commands that only the running shell knows, and the scripts that are known beside them."""
    return Wrapping(scripts=scripts, hidden=why, is_unknown=True)


def _file_of_commands(words: Sequence[Word], why: str) -> Wrapping:
    """Return the result for a file of commands; what `<(…)` prints is none."""
    is_piped = any(PIPE in word.value for word in words)
    return Wrapping(hidden=why, is_unknown=is_piped, runs_file=True)


def _text_of(words: tuple[Word, ...]) -> str:
    return " ".join(word.text or word.value.replace(UNKNOWN, "…") for word in words)


_SPECIAL: dict[str, Callable[[SimpleCommand], Wrapping | None]] = {
    "eval": _eval, "trap": _trap, "find": _find, ".": _source, "source": _source, "alias": _alias,
    "awk": _awk, "cmake": _cmake,
}  # fmt: skip
"""Commands whose other commands no row can tell."""
