"""Programs: lookup of those that tools start, commands that read data as a script, and how this one is installed.

A program inside the workspace never passes for one of the system. Shells read their text from a descriptor: among the
arguments of bash, `pkill -f` and `pgrep -f` would find the shell that runs them by the words of its own text. What
reaches a hook on its standard input is data and must never run.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from .messages import is_object


def find_program(name: str, workspace: Path) -> Path | None:
    """Return the first executable `name` on PATH that is, with links followed, outside `workspace`; None if none is."""
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(directory, name)
        # A relative entry of PATH depends on the current directory, which may be the workspace.
        if not os.path.isabs(program) or not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        if not _is_in(Path(program), workspace):
            return Path(program)
    return None


def outside_search_path(path: str, workspace: Path) -> str:
    """Return a search path such as PATH without entries that are relative or lead into `workspace`."""
    entries = (Path(entry) for entry in path.split(os.pathsep))
    return os.pathsep.join(str(entry) for entry in entries if entry.is_absolute() and not _is_in(entry, workspace))


def _is_in(path: Path, workspace: Path) -> bool:
    """Return True if a path is in the workspace."""
    if workspace == Path("/"):  # Every program is below it, so the check would leave none.
        return False
    # A link in the workspace leads to a program of its owner, and one outside may lead into the workspace.
    return path.is_relative_to(workspace) or Path(os.path.realpath(path)).is_relative_to(workspace)


_READER = 'IFS= read -rd "" -u "$1" BASH_EXECUTION_STRING; eval "exec $1<&-"; shift; eval -- "$BASH_EXECUTION_STRING"'
"""Script that reads the text from the descriptor in its argument, and runs it as `bash -c` does."""


def script_argv(bash: str) -> tuple[str, ...]:
    """Return the arguments that start `bash`, without its startup files, for a text; append the descriptor's number."""
    return (bash, "--noprofile", "--norc", "-c", _READER, bash)


def open_script(text: str) -> int:
    """Return a descriptor from which a shell reads `text`; the caller closes it once the shell has started.

    Raises:
        OSError: the file system or the memory is full.
    """
    data = os.fsencode(text)
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("script")
    else:
        # Only systems without memory files pay for this import.
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        written = 0
        while written < len(data):
            written += os.write(descriptor, data[written:])
        os.lseek(descriptor, 0, os.SEEK_SET)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def start_directory(workspace: Path) -> Path:
    """Return the directory in which commands start: the workspace, or its nearest existing parent if it was removed."""
    return next((path for path in (workspace, *workspace.parents) if path.is_dir()), workspace)


_INSTALLERS = (
    ("uv-receipt.toml", "uv tool install --force"),
    ("pipx_metadata.json", "pipx install --force"),
)
"""File that an installer leaves in the environment of a program, and its command."""


class Origin(NamedTuple):
    """The source of this installation."""

    requirement: str
    """Requirement for an installer, with `{}` for the extras."""
    directory: str = ""
    """The clone that it was installed from; empty if it was not."""
    is_editable: bool = False


def install_command(extra: str = "") -> str:
    """Return the shell command that installs this program again, with an extra: from where it came, into the same
    environment."""
    found, root = origin(), Path(sys.prefix)
    pip = f"{root / 'bin' / 'pip'} install --upgrade{' -e' * found.is_editable}"
    installer = next((command for file, command in _INSTALLERS if (root / file).is_file()), pip)
    return f"{installer} '{found.requirement.replace('{}', f'[{extra}]' if extra else '')}'"


@cache
def origin() -> Origin:
    """Return the source of this installation; without a record of it, the name that an index may know."""
    from importlib import metadata  # Only messages need it, and its import takes longer than theirs.

    by_name = Origin("tui-agent{}")
    try:
        record: object = json.loads(metadata.distribution("tui-agent").read_text("direct_url.json") or "")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return by_name
    url = record.get("url") if is_object(record) else None
    if not is_object(record) or not isinstance(url, str):
        return by_name
    vcs, directory = record.get("vcs_info"), record.get("dir_info")
    if is_object(vcs):
        return Origin(f"tui-agent{{}} @ {vcs.get('vcs')}+{url}")
    if is_object(record.get("archive_info")):
        return Origin(f"tui-agent{{}} @ {url}")  # A wheel or a source archive, from a directory or the web.
    if not is_object(directory) or not url.startswith("file:"):
        return by_name
    path = unquote(urlsplit(url).path)
    return Origin(f"{path}{{}}", path, directory.get("editable") is True)


_SHELL = re.compile(
    r"(?:(?:ba|da|a|c|k|z|fi|mk|rba|tc|pw|xon|o|y|ya)?sh|elvish|powershell|nu|busybox|source|\.)[\d.-]*"
    r"|\$\{?(?:shell|bash)\}?"
)
_INTERPRETER = re.compile(
    r"(?:(?:i?python|pypy|perl|php|lua|ruby|node|tclsh|wish|guile|julia|deno|bun|ts-node|tsx)[\d.]*|nodejs|luajit|irb|ghci"
    r"|iex|elixir|rscript|r|octave|osascript|sqlite3|psql|mysql|bc|dc|m4|ed|gdb|expect)(?:-dbg)?"
)
_WRAPPERS = re.compile(
    r"arch|busybox|caffeinate|chpst|chronic|chroot|chrt|command|conda|direnv|docker|doas|env|exec|firejail|flock"
    r"|g?timeout|hatch|ionice|kubectl|mise|nice|nix|nix-shell|nohup|npx|pdm|pipenv|podman|poetry|proot|rlwrap|runuser|rye"
    r"|setarch|setpriv|setsid|ssh|stdbuf|strace|su|sudo|systemd-run|taskset|time|toybox|unbuffer|unshare|uvx?|watch"
    r"|xargs"
)
"""Programs that start the one that their arguments name."""
_MARKS = "();<>|&`\n"
"""Characters that separate the arguments of commands."""
_KEYWORDS = frozenset(("!", "{", "if", "then", "else", "elif", "while", "until", "do", "coproc"))
_ASSIGNMENT = re.compile(r"\w+\+?=")
_INPUT = re.compile(r"-|/+dev/+(?:stdin|fd/+0+)|/+proc/+[^/]+/+fd/+0+")
_WITH_VALUE = re.compile(r"[-+][oO]|-[WXIrCdl]|--(?:rcfile|init-file|require|import|loader|conditions|env-file)")
"""Options of these programs whose value is the next argument."""
_CODE = re.compile(r"-[a-zA-Z]*[ceEmnpf]|--(?:eval|print|command|file|run|test|check)(?:=.*)?")
"""Options with the code, or with the name of its file."""
_HEREDOC = re.compile(
    r"<<-?\s*(?P<quote>['\"\\]?)(?P<end>\w+)(?P=quote)[^\n]*\n.*?^\s*(?P=end)$", re.DOTALL | re.MULTILINE
)


def script_reader(arguments: Sequence[str]) -> str | None:
    """Return the program of an argument vector that would read its standard input as a script; None: none would."""
    words = list(arguments)
    while words and (_ASSIGNMENT.match(words[0]) or words[0] in _KEYWORDS):
        del words[0]
    if not words:
        return None
    first = _base_name(words[0])
    if first == "command" and words[1:2] and words[1].startswith(("-v", "-V")):
        return None
    last = len(words) if _WRAPPERS.fullmatch(first) else 1
    for index, word in enumerate(words[:last]):
        name = _base_name(word)
        is_shell = _SHELL.fullmatch(name) is not None
        if is_shell or _INTERPRETER.fullmatch(name):
            if name == "busybox" and words[index + 1 :]:
                continue
            return name if _reads_input(words[index + 1 :], is_shell=is_shell) else None
    return None


def script_reader_of_line(line: str) -> str | None:
    """Return a program of a shell's command line that would read the line's input, or another program's output, as a
    script; None: none would."""
    for words in _simple_commands(line):
        if (name := script_reader(words)) is not None:
            return name
    return None


def _base_name(word: str) -> str:
    return re.split(r"[/\\]", word)[-1].removesuffix(".exe").lower() if len(word) > 1 else word


def _reads_input(arguments: Sequence[str], *, is_shell: bool) -> bool:
    """Return True if these arguments of an interpreter name neither a script nor code."""
    left = iter(arguments)
    for argument in left:
        if argument in ("run", "--"):
            continue
        if _is_input(argument) or (is_shell and re.fullmatch("-[a-z]*s[a-z]*", argument) and "c" not in argument):
            return True
        if _CODE.fullmatch(argument) and not (is_shell and "c" not in argument):
            # A shell's code may start another one with the same input.
            value = argument.partition("=")[2] or next(left, "")
            return _is_input(value) or (is_shell and script_reader_of_line(value) is not None)
        if _WITH_VALUE.fullmatch(argument):
            next(left, None)
        elif not argument.startswith(("-", "+")):
            return False
    return True


def _is_input(path: str) -> bool:
    return _INPUT.fullmatch(path.replace("/./", "/")) is not None


def _simple_commands(line: str) -> Iterator[list[str]]:
    """Yield the words of each simple command whose input is not redirected."""
    tokens = shlex.shlex(_HEREDOC.sub("< text\n", line), posix=True, punctuation_chars=_MARKS)
    tokens.commenters, tokens.whitespace, tokens.whitespace_split = "", " \t\r", True
    words: list[str] = []
    is_redirected = is_comment = False
    try:
        for token in tokens:
            is_comment = (is_comment or token.startswith("#")) and "\n" not in token
            if is_comment:
                continue
            if not set(token) <= set(_MARKS):
                words.append(token)
                continue
            number = ""
            if ("<" in token or ">" in token) and words and words[-1].isdigit():
                number = words.pop().lstrip("0")  # Of a descriptor, as in `2>`.
            if "<" in token:
                target = next(tokens, "")
                is_same = _is_input(target) or (token == "<&" and target == "0")
                is_redirected = is_redirected or not (number or is_same)
            elif ">" in token:
                next(tokens, None)
            else:
                if not is_redirected:
                    yield words
                words, is_redirected = [], False
    except ValueError:
        # The shell does not run it either.
        return
    if not is_redirected:
        yield words
