"""Commands that run another command, and where in their words that command begins.

One line a wrapper: the options it takes alone, the options that take a value, how many words of its own come before
the command. To add one, add a line.
"""

from dataclasses import dataclass
from functools import cache

from .shell_syntax import names


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one wrapper is written."""

    flags: frozenset[str]
    """Options without a value, without their dashes."""
    values: frozenset[str]
    """Options with a value."""
    own_words: int = 0
    """Words before the command that are not options."""
    assigns: bool = False
    """`NAME=value` before the command sets a variable."""
    is_transparent: bool = False
    """Changes nothing about what the command does: the inner command alone decides."""
    vouches: bool = False
    """A rule that allows the wrapper is meant to allow what it runs."""
    is_open: bool = False
    """The command gets more words at run time."""


_TRANSPARENT = {
    "command": "p",
    "builtin": "",
    "time": "p portability",
    "timeout": "foreground preserve-status v verbose | k s kill-after signal | 1",
    "nice": "| n adjustment",
    "nohup": "",
    "stdbuf": "| i o e input output error",
    "ionice": "t ignore | c n class classdata",
    "chronic": "",
    "unbuffer": "p",
}
_OPEN = {
    "xargs": "0 null r no-run-if-empty t verbose p interactive x exit o open-tty "
    "| I n P L d a s E max-args max-procs max-lines delimiter arg-file max-chars replace",
}
_OPAQUE = {
    "exec": "c l | a",
    "setsid": "c ctty f fork w wait",
    "sudo": "A b E e H i K k l n P S s V v askpass background preserve-env non-interactive login shell stdin "
    "| C D g h p R r T t U u chdir user group host prompt chroot role type other-user",
    "doas": "n s L | a C u",
    "chroot": "skip-chdir | userspec groups | 1",
    "unshare": "m u i n p U C T f r c fork mount net pid user map-root-user | S G R w root wd setuid setgid",
    "nsenter": "a m u i n p U C T F r w all | t S G target setuid setgid",
    "taskset": "a p c all-tasks cpu-list | | 1",
    "chrt": "a b d f i m o r R v | T P D p | 1",
    "setarch": "R 3 B F I L S T X Z v | | 1",
    "prlimit": "| p o pid output",
    "flock": "e x s u n o F v exclusive shared unlock nonblock no-fork close | w E timeout conflict-exit-code | 1",
    "strace": "c C d f F h i k q r t T v V x y w | a b e I o O p P s S u E",
    "ltrace": "c C f h i L r S t T V | a A D e l n o p s u w x F",
    "watch": "b c d e g p t x beep color differences errexit chgexit precise no-title exec | n interval",
    "pkexec": "| user",
    "runuser": "m p l f | u g G s",
    "caffeinate": "d i m s u | t w",
    "systemd-run": "G P q r S t d user system scope pty pipe wait collect same-dir no-block "
    "| u p E M H uid gid nice unit property slice description service-type working-directory setenv",
    "su": "l m p f login preserve-environment pty | c g G s w command group shell",
    "script": "a e f q append return flush quiet | c I O B E T m o command log-in log-out",
    "nix-shell": "pure impure | run p packages command",
    "firejail": "quiet noprofile",
    "busybox": "",
    "valgrind": "",
    "parallel": "k u v X m n | j a I N d S L colsep jobs delay timeout retries halt results joblog",
}
_RUNNERS = {
    "uv run": "isolated no-sync frozen locked offline q v m no-project active exact "
    "| p with python extra group package with-requirements env-file directory project only-group with-editable",
    "poetry run": "",
    "pipenv run": "",
    "pdm run": "s v q | p",
    "hatch run": "",
    "rye run": "",
    "bundle exec": "keep-file-descriptors | gemfile",
    "npm exec": "y yes | p c package call w workspace",
    "npx": "y yes no no-install q quiet | p c package call",
    "pnpm exec": "r recursive | filter",
    "pnpm dlx": "| package",
    "yarn exec": "",
    "yarn dlx": "q | p package",
    "bunx": "bun",
    "pipx run": "no-cache verbose | spec python pip-args",
    "uvx": "isolated offline q v | from with python p",
    "direnv exec": "| | 1",
    "docker exec": "d i t detach interactive tty privileged | e u w env user workdir env-file | 1",
    "docker run": "d i t rm init P q privileged read-only | e v p u w name env volume publish user workdir entrypoint "
    "network mount platform label memory cpus env-file | 1",
    "docker compose exec": "d T privileged | e u w index env user workdir | 1",
    "kubectl exec": "i t q stdin tty quiet | c n container namespace | 1",
    "coverage run": "a p branch | m source omit include rcfile data-file",
}

SHELLS = names("bash sh dash zsh ksh mksh ash rbash fish tcsh csh")
"""Interpreters of shell text: `-c` is followed by a script."""
INTERPRETERS = names(
    "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua luajit Rscript julia tclsh awk gawk mawk "
    "nawk osascript ghci scala groovy jshell irb pwsh powershell elixir erl guile racket sbcl"
)
"""Interpreters of other languages: what they do cannot be told from their words."""


@cache
def wrappers() -> dict[str, Wrapper]:
    """Every wrapper by its first word or words."""
    table: dict[str, Wrapper] = {}
    for name, text in _TRANSPARENT.items():
        table[name] = _wrapper(text, is_transparent=True)
    table["env"] = _wrapper("i 0 v ignore-environment null debug | u C unset chdir", assigns=True, is_transparent=True)
    for name, text in _OPEN.items():
        table[name] = _wrapper(text, is_transparent=True, is_open=True)
    for name, text in _OPAQUE.items():
        table[name] = _wrapper(text, assigns=name in ("sudo", "doas"))
    for name, text in _RUNNERS.items():
        table[name] = _wrapper(text, vouches=True)
    return table


def _wrapper(
    text: str, *, assigns: bool = False, is_transparent: bool = False, vouches: bool = False, is_open: bool = False
) -> Wrapper:
    flags, values, own_words = (*(part.strip() for part in text.split("|")), "", "")[:3]
    return Wrapper(names(flags), names(values), int(own_words or 0), assigns, is_transparent, vouches, is_open)
