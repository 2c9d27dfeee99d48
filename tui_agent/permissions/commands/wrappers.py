"""Commands inside other commands: what `env`, `timeout`, `sh -c` and the like run.

Rules that forbid look through them. It is a convenience: a program can run another one in ways that no text shows.
"""

import re
from collections.abc import Iterator, Sequence

from .script_reader import UNKNOWN, SimpleCommand, names, read_script

OUTSIDE = "outside the workspace"
NETWORK_CODE = "runs code from the network"
_NETWORK = "uses the network"
_LOADERS = frozenset(("curl", "wget"))

_PATTERNS = {
    "runs as another user": r"(?:sudo|doas|su|pkexec|runuser)\b",
    "overwrites disks": r"(?:dd|mkfs\S*|fdisk|parted|wipefs|blkdiscard)\b",
    "deletes files": r"(?:rm|rmdir|unlink|shred)\b|git (?:rm|clean)\b|find .* -delete\b",
    "force-pushes": r"git push .*(?:--force|--mirror|-f\b|\+)",
    "discards changes": r"git (?:restore\b|reset .*--hard|checkout .*(?:--|-f|\.)(?: |$)|stash (?:drop|clear))",
    "pushes": r"git push\b",
    _NETWORK: r"(?:curl|wget|ssh|scp|sftp|rsync|nc|ncat|telnet|ftp)\b|git (?:fetch|pull|clone|ls-remote)\b"
    r"|(?:npm|pip3?|cargo|uv|gem|brew|apt|apt-get) .*(?:install|add|publish)\b",
    "ends processes": r"(?:kill|pkill|killall)\b",
}
"""Patterns for the words of a command, the worst consequence first."""
_COMPILED = {text: re.compile(pattern) for text, pattern in _PATTERNS.items()}
_LONGEST_READ = 4_000


def consequences_of(argv: Sequence[str], *, before: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the known consequences of a simple command, the worst first; it reads the output of `before`, if any."""
    if not argv:
        return ()
    # Bounded, because the patterns look for words anywhere in the line.
    line = " ".join((base_name(argv[0]), *argv[1:]))[:_LONGEST_READ]
    found = [text for text, pattern in _COMPILED.items() if pattern.match(line)]
    is_loaded = bool(before) and base_name(before[0]) in _LOADERS and base_name(argv[0]) in INTERPRETERS
    return (*([NETWORK_CODE] if is_loaded else []), *found)


MAX_DEPTH = 6
MAX_FOUND = 500

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "mksh", "fish"))
INTERPRETERS = SHELLS | names("python python3 node deno bun perl ruby php source .")
"""Programs that run the file which their first operand names."""

WRAPPERS = {
    # Name: options with a value of their own, words before the command.
    "env": ("-u -C --unset --chdir", 0),
    "timeout": ("-k -s --kill-after --signal", 1),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n --class --classdata", 0),
    "chrt": ("-T -P -D", 1),
    "taskset": ("", 1),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "time": ("-f -o --format --output", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "xargs": ("-I -L -n -P -s -d -E -a --max-lines --max-args --max-procs --max-chars --delimiter --arg-file", 0),
    "sudo": ("-u -g -h -p -C -T -R -D --user --group --host --prompt --chdir", 0),
    "doas": ("-u -C", 0),
    "watch": ("-n --interval", 0),
    "busybox": ("", 0),
    "strace": ("-e -o -p -s -u -E", 0),
    "chroot": ("", 1),
    "unshare": ("", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    "parallel": ("-j --jobs", 0),
}  # fmt: skip
_TEXTS = {"flock": "-c --command", "su": "-c --command", "script": "-c --command", "env": "-S --split-string"}
"""Options of other programs whose value is a text for a shell."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_SHELL_TEXT = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*\Z")
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_GIT_VALUES = names("-C -c --git-dir --work-tree --namespace --exec-path --config-env --super-prefix")


def base_name(name: str) -> str:
    """Return a program's name without its directory."""
    return name.rpartition("/")[2]


def inner_commands(command: SimpleCommand, before: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the argv of every command that a command's own text runs, wrappers included, at most `MAX_FOUND`.

    `before` is the argv of the command whose output it reads.
    """
    # A text may nest commands without end; what is not found here still runs in the trial.
    left = MAX_FOUND
    printed = " ".join(before[1:]) if before and base_name(before[0]) in ("echo", "printf") else None
    waiting = [(command.argv, command.input or printed, 0)]
    while waiting and left:
        argv, given, depth = waiting.pop()
        if depth >= MAX_DEPTH or not argv:
            continue
        for inner in _run_by(argv):
            left -= 1
            yield inner
            waiting.append((inner, given, depth + 1))
            if not left:
                return
        for text in _texts_of(argv, given):
            for one in read_script(text).commands:
                left -= 1
                yield one.argv
                waiting.append((one.argv, one.input, depth + 1))
                if left <= 0:
                    return


def _run_by(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the command that a wrapper runs; both, if an option may or may not have a value."""
    name = base_name(argv[0])
    if name == "find":
        for at, word in enumerate(argv):
            if word in _FIND_RUNS and argv[at + 1 :]:
                yield tuple(argv[at + 1 :])
    if name not in WRAPPERS:
        return
    values, own_words = WRAPPERS[name]
    # It only says where a program is.
    if name == "command" and argv[1:2] in (("-v",), ("-V",)):
        return
    at = 1
    while at < len(argv) and (
        argv[at].startswith("-") or (name in ("env", "sudo", "time") and _ASSIGNMENT.match(argv[at]))
    ):
        word, at = argv[at], at + 1
        if word == "--":
            break
        if word in values.split():
            at += 1
        elif word.startswith("-") and argv[at + own_words + 1 :] and "=" not in word and len(word) > 2:
            yield tuple(argv[at + own_words + 1 :])
    if argv[at + own_words :]:
        yield tuple(argv[at + own_words :])


def _texts_of(argv: Sequence[str], given: str | None) -> Iterator[str]:
    """Yield the texts that a shell reads: of `sh -c`, `eval`, `trap`, or its input."""
    name, rest = base_name(argv[0]), argv[1:]
    if name in SHELLS:
        options = next((at for at, word in enumerate(rest) if _SHELL_TEXT.match(word)), None)
        if options is None:
            yield from [given] if given else []
            return
        yield from (word for word in rest[options + 1 :][:3] if not word.startswith("-"))
    elif name in ("eval", "watch", "parallel"):
        yield " ".join(rest)
    elif name == "trap" and rest:
        yield next((word for word in rest if word != "--"), "")
    elif name in _TEXTS:
        for at, word in enumerate(rest):
            option, is_joined, value = word.partition("=")
            if option in _TEXTS[name].split():
                yield value if is_joined else " ".join(rest[at + 1 : at + 2])


def forms_of(argv: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the words of a command in the forms that a rule may name it by: as written, without the directory of the
    program, and for git without the options before its subcommand."""
    forms = [tuple(argv)]
    if argv:
        # `deny git push` means /usr/bin/git, too.
        forms.append((base_name(argv[0]), *argv[1:]))
        if forms[-1][0] == "git" and len(argv) > 1 and argv[1].startswith("-"):
            at = 1
            while at < len(argv) and argv[at].startswith("-"):
                at += 2 if argv[at] in _GIT_VALUES else 1
            forms.append(("git", *argv[at:]))
        if UNKNOWN in argv[0] and argv[0] != UNKNOWN:
            forms.append((UNKNOWN, *argv[1:]))
    return list(dict.fromkeys(forms))
