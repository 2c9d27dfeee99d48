"""Table of commands that run another command, with the position of that command in their words.

One line a wrapper: options without a value, options with a value, number of its own operands before the command. `@`
after an option: its value is the command's working directory. To add a wrapper, add a line.
"""

from dataclasses import dataclass
from functools import cache

from .shell_syntax import names


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Notation of one wrapper."""

    flags: frozenset[str]
    """Options without a value, without their dashes."""
    values: frozenset[str]
    """Options with a value."""
    own_words: int = 0
    """Number of operands before the command."""
    assigns: bool = False
    """True if `NAME=value` before the command sets a variable."""
    is_transparent: bool = False
    """True if it does not change what the command does: the inner command alone decides."""
    allows_inner: bool = False
    """True if a rule that allows the wrapper is meant to allow its command."""
    is_open: bool = False
    """True if the command gets more words at run time."""
    directories: frozenset[str] = frozenset()
    """Options whose value is the command's working directory."""
    joins: bool = False
    """True if it passes the command's words to a shell, as one text."""


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
    "| I n P L d a s E max-args max-procs delimiter arg-file max-chars",
}
_OPAQUE = {
    "exec": "c l | a",
    "setsid": "c ctty f fork w wait",
    "sudo": "A b E e H i K k l n P S s V v askpass background preserve-env non-interactive login shell stdin "
    "| C D@ g h p R r T t U u chdir@ user group host prompt chroot role type other-user",
    "doas": "n s L | a C u",
    "chroot": "skip-chdir | userspec groups | 1",
    "unshare": "m u i n p U C T f r c fork mount net pid user map-root-user | S G R w@ root wd@ setuid setgid",
    "nsenter": "a m u i n p U C T F r w all | t S G target setuid setgid",
    "taskset": "a p c all-tasks cpu-list | | 1",
    "chrt": "a b d f i m o r R v | T P D p | 1",
    "setarch": "R 3 B F I L S T X Z v | | 1",
    "prlimit": "| p o pid output",
    "flock": "e x s u n o F v exclusive shared unlock nonblock no-fork close | w E timeout conflict-exit-code | 1",
    "strace": "c C d f F h i k q r t T v V x y w | a b e I o O p P s S u E",
    "ltrace": "c C f h i L r S t T V | a A D e l n o p s u w x F",
    "pkexec": "| user",
    "runuser": "m p l f | u g G s",
    "caffeinate": "d i m s u | t w",
    "systemd-run": "G P q r S t d user system scope pty pipe wait collect same-dir no-block "
    "| u p E M H uid gid nice unit property slice description service-type working-directory@ setenv",
    "su": "l m p f login preserve-environment pty | c g G s w command group shell",
    "script": "a e f q append return flush quiet | c I O B E T m o command log-in log-out log-io log-timing | 1",
    "nix-shell": "pure impure | run p packages command",
    "firejail": "quiet noprofile",
    "busybox": "",
    "toybox": "",
    "valgrind": "q v h tool",
    "fakeroot": "u unknown-is-real | l s i b lib faked",
    "fakechroot": "s use-system-libs | d e c",
    "proot": "0 v | r b q w@ k S R cwd@ rootfs bind",
    "proxychains": "q | f",
    "proxychains4": "q | f",
    "torsocks": "i d | u p a P",
    "torify": "v",
    "tsocks": "",
    "setpriv": "d clear-groups keep-groups init-groups no-new-privs reset-env dump "
    "| reuid regid ruid rgid euid egid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label",
    "gosu": "| | 1",
    "su-exec": "| | 1",
    "setuidgid": "| | 1",
    "chpst": "0 1 2 P v V | u U b e@ / n l L m d o p f c r t",
    "runcon": "c compute | t u r l type user role range | 1",
    "eatmydata": "",
    "numactl": "s l H a show localalloc hardware all "
    "| i N C m p M interleave cpunodebind physcpubind membind preferred cpubind",
    "cpulimit": "b q z i m f v | l e P p limit exe path",
    "cgexec": "| g sticky",
    "trickle": "s v | d u w t l n P N",
    "dbus-run-session": "| config-file dbus-daemon",
    "dbus-launch": "exit-with-session exit-with-x11 autolaunch sh-syntax csh-syntax",
    "xvfb-run": "a l auto-servernum listen-tcp "
    "| e f n p s w error-file auth-file server-num xauth-protocol server-args",
    "rlwrap": "a c e i m n N o r R u v | f H l p s t",
    "linux32": "R 3 B v",
    "linux64": "R 3 B v",
    "i386": "R 3 B v",
    "catchsegv": "",
    "perf stat": "a r v d n | e p t o x C I",
    "perf record": "a g v q | e p t o F C c",
    "mpirun": "| n np host hostfile x wd@ wdir@",
    "mpiexec": "| n np host hostfile x wdir@",
    "doppler run": "| p c project config",
    "op run": "no-masking | env-file account",
    "aws-vault exec": "n s | d duration mfa-token | 1",
    "dotenv": "o | f e",
    "dotenvx run": "| f e",
    "envdir": "| | 1",
    "ip netns exec": "| | 1",
    "podman unshare": "rootless-netns",
    "lxc-attach": "| n name",
    "lxc exec": "t T n | cwd@ env user group mode | 1",
    "incus exec": "t T n | cwd@ env user group mode | 1",
    "machinectl shell": "q | uid setenv E | 1",
}
_JOINED = {
    "watch": "b c d e g p t x w beep color differences errexit chgexit precise no-title no-wrap no-rerun exec "
    "| n q interval equexit",
    "sg": "- | | 1",
    "entr": "a c d n p r s z",
    "parallel": "k u v X m n 0 keep-order ungroup verbose null dry-run bar "
    "| j a I N d S L C P arg-file colsep delimiter jobs delay timeout retries halt results joblog wd@ workdir@",
}
"""Wrappers that pass their words to a shell as one text."""
_REMOTE = {
    "ssh": "4 6 A a C f G g K k M N n q s T t V v X x Y y | B b c D E e F I i J L l m O o p Q R S W w P | 1",
    "mosh": "| p ssh | 1",
    "rsh": "n | l | 1",
}
"""The same for another machine; a rule for one of them is meant to allow what it runs there."""
_RUNNERS = {
    "uv run": "isolated no-sync frozen locked offline q v m no-project active exact "
    "| p with python extra group package with-requirements env-file directory@ project only-group with-editable",
    "poetry run": "",
    "pipenv run": "",
    "pdm run": "s v q | p",
    "hatch run": "",
    "rye run": "",
    "bundle exec": "keep-file-descriptors | gemfile",
    "npm exec": "y yes | p c package call w workspace",
    "npx": "y yes no no-install q quiet | p c package call",
    "pnpm exec": "r recursive | filter C@ dir@",
    "pnpm dlx": "| package",
    "yarn exec": "",
    "yarn dlx": "q | p package",
    "bunx": "bun",
    "pipx run": "no-cache verbose | spec python pip-args",
    "uvx": "isolated offline q v | from with python p",
    "direnv exec": "| | 1",
    "kubectl exec": "i t it q stdin tty quiet | c n container namespace | 1",
    "oc exec": "i t it q stdin tty quiet | c n container namespace | 1",
    "coverage run": "a p branch | m source omit include rcfile data-file",
}
_CONTAINERS = ("docker", "podman", "nerdctl")
_COMPOSED = ("docker compose", "podman compose", "nerdctl compose", "docker-compose", "podman-compose")
_EXEC = "d i t detach interactive tty privileged | e u w env user workdir env-file | 1"
_RUN = (
    "d i t rm init P q privileged read-only | a e v p u w h l m c name env volume publish user workdir entrypoint "
    "network mount platform label memory cpus env-file add-host hostname tmpfs shm-size ulimit restart pull cap-add "
    "cap-drop security-opt device gpus log-driver userns pid ipc link net expose dns | 1"
)
_COMPOSE_EXEC = "d T privileged | e u w index env user workdir | 1"
_COMPOSE_RUN = (
    "d T i rm build no-deps quiet-pull service-ports | e l p u v w name env entrypoint user workdir volume | 1"
)

SHELLS = names("bash sh dash zsh ksh mksh ash rbash fish tcsh csh")
"""Interpreters of shell text, with a script after `-c`."""
INTERPRETERS = names(
    "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua luajit Rscript julia tclsh awk gawk mawk "
    "nawk osascript ghci scala groovy jshell irb pwsh powershell elixir erl guile racket sbcl"
)
"""Interpreters of other languages, whose effect their words do not tell."""


@cache
def wrappers() -> dict[str, Wrapper]:
    """Return every wrapper by its first word or words."""
    table: dict[str, Wrapper] = {}
    for name, text in _TRANSPARENT.items():
        table[name] = _wrapper(text, is_transparent=True)
    table["env"] = _wrapper(
        "i 0 v ignore-environment null debug | u C@ unset chdir@", assigns=True, is_transparent=True
    )
    for name, text in _OPEN.items():
        table[name] = _wrapper(text, is_transparent=True, is_open=True)
    for name, text in _OPAQUE.items():
        table[name] = _wrapper(text, assigns=name in ("sudo", "doas"))
    for name, text in _JOINED.items():
        table[name] = _wrapper(text, is_open=name == "parallel", joins=True)
    for name, text in _REMOTE.items():
        table[name] = _wrapper(text, allows_inner=True, joins=True)
    for name, text in (_RUNNERS | _of_containers()).items():
        table[name] = _wrapper(text, allows_inner=True)
    return table


def _of_containers() -> dict[str, str]:
    rows: dict[str, str] = {}
    for name in _CONTAINERS:
        for group in (name, f"{name} container"):
            rows |= {f"{group} exec": _EXEC, f"{group} run": _RUN, f"{group} create": _RUN}
    for name in _COMPOSED:
        rows |= {f"{name} exec": _COMPOSE_EXEC, f"{name} run": _COMPOSE_RUN}
    return rows


def _wrapper(
    text: str,
    *,
    assigns: bool = False,
    is_transparent: bool = False,
    allows_inner: bool = False,
    is_open: bool = False,
    joins: bool = False,
) -> Wrapper:
    flags, marked, own_words = (*(part.strip() for part in text.split("|")), "", "")[:3]
    directories = frozenset(name.removesuffix("@") for name in names(marked) if name.endswith("@"))
    values = frozenset(name.removesuffix("@") for name in names(marked))
    return Wrapper(
        names(flags), values, int(own_words or 0), assigns, is_transparent, allows_inner, is_open, directories, joins
    )
