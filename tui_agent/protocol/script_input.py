"""Commands that read their standard input as a script: what reaches a hook is data and must never run."""

import re
import shlex
from collections.abc import Iterator, Sequence

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
