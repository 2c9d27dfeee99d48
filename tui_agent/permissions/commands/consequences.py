"""Consequences of a shell command in a few words, such as `deletes files`, for the user and the model.

They explain a question and decide nothing: a command without a known consequence is not harmless.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from tui_agent.permissions.rules.normalized_argv import strip_git_options
from tui_agent.permissions.shell.syntax import names

from .catalogue import INTERPRETERS, SHELLS, canonical_name

NETWORK_CODE = "runs code from the network"
OUTSIDE = "outside the workspace"
MAY_CHANGE = "may change files"
"""Words for a command whose consequences are not known."""

_PROGRAMS: Mapping[str, Collection[str]] = {
    "runs as another user": names("sudo doas su pkexec runuser"),
    "overwrites disks": names("dd mkfs fdisk parted wipefs blkdiscard"),
    "deletes files": names("rm rmdir unlink shred"),
    "publishes": names("twine"),
    "changes the system": names(
        "systemctl service mount umount sysctl useradd userdel usermod passwd crontab iptables nft ufw shutdown reboot"
    ),
    "stops processes": names("kill pkill killall"),
    "changes permissions of files": names("chmod chown chgrp chattr setfacl"),
    "uses the network": names(
        "curl wget fetch aria2c xh ssh scp sftp mosh ftp nc ncat netcat socat telnet ping dig nslookup host gh"
    ),
    "runs a downloaded program": names("npx bunx uvx pipx"),
    "runs code of the project": names("make gmake just task tox nox pytest rake gradle gradlew mvn ctest ninja jest"),
    "changes files": names("cp mv mkdir touch ln tee install truncate patch tar unzip gunzip zip gzip split"),
}
_SUBCOMMANDS: Mapping[str, Mapping[str, Collection[str]]] = {
    "deletes files": {"git": names("clean rm"), "cargo": names("clean")},
    "discards changes": {"git": names("restore")},
    "publishes": {
        **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "cargo", "poetry", "uv", "hatch", "flit"), names("publish")),
        **dict.fromkeys(("docker", "podman", "gem", "helm"), names("push")),
    },
    "pushes": {"git": names("push")},
    "changes packages of the system": dict.fromkeys(
        ("apt", "apt-get", "dnf", "yum", "zypper", "apk", "brew", "snap", "flatpak", "port", "emerge"),
        names("install add remove del purge autoremove update upgrade full-upgrade dist-upgrade reinstall uninstall"),
    ),
    "installs packages": {
        **dict.fromkeys(("pip", "pip3", "gem", "cargo", "go", "pipx", "conda", "mamba"), names("install")),
        **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "poetry", "composer"), names("install i ci add update upgrade")),
        "uv": names("sync add pip"),
        "bundle": names("install update"),
    },
    "uses the network": {
        "git": names("fetch pull clone ls-remote submodule remote"),
        **dict.fromkeys(("docker", "podman"), names("pull login")),
        "go": names("get mod"),
    },
    "runs code of the project": {
        **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), names("run test start exec t run-script dev build")),
        **dict.fromkeys(("cargo", "go", "dotnet", "swift", "zig", "mix"), names("run test build bench generate check")),
        **dict.fromkeys(("docker", "podman"), names("build compose run")),
        **dict.fromkeys(("poetry", "uv", "hatch", "pdm", "bundle"), names("run exec test")),
    },
}
_OPTIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("deletes files", re.compile(r"find\s(?:.*\s)?-delete\b|rsync\s.*--delete")),
    (
        "discards changes",
        re.compile(
            r"git (?:reset\s(?:.*\s)?--hard|checkout\s(?:.*\s)?(?:--|-f|--force|\.)(?:\s|$)|stash (?:drop|clear))"
        ),
    ),
    ("force-pushes", re.compile(r"git push\s(?:.*\s)?(?:--force\S*|-\w*f\w*|--mirror|\+\S+)")),
    ("publishes", re.compile(r"gh release create\b")),
    ("changes packages of the system", re.compile(r"(?:dpkg|rpm)\s(?:.*\s)?-\w*[iUerP]|pacman\s(?:.*\s)?-\w*[SRU]")),
    ("uses the network", re.compile(r"(?:rsync|sync)\s.*\S:")),
    ("changes files", re.compile(r"sed\s(?:.*\s)?(?:-\w*i|--in-place)|git (?:apply|checkout|switch|reset|mv|stash)\b")),
)
"""Consequences of options; git's global options and directories of programs are removed before."""
_LONGEST_READ = 4_000
"""Characters of a command that are searched for options."""
_OF_PROJECT = "runs code of the project"
_OF_GIT = "changes the repository"

_WORST_FIRST = (
    NETWORK_CODE,
    "runs as another user",
    "overwrites disks",
    "deletes files",
    "discards changes",
    "force-pushes",
    "publishes",
    "pushes",
    OUTSIDE,
    "changes packages of the system",
    "changes the system",
    "stops processes",
    "changes permissions of files",
    "installs packages",
    "runs a downloaded program",
    "uses the network",
    _OF_PROJECT,
    "runs a script",
    "changes files",
    _OF_GIT,
    MAY_CHANGE,
)
_IMPLIES = {
    NETWORK_CODE: ("uses the network", "runs a script"),
    "force-pushes": ("pushes", _OF_GIT),
    "pushes": (_OF_GIT,),
    "discards changes": ("changes files",),
    "runs as another user": ("runs a script",),
    "deletes files": ("changes files", _OF_GIT),
    "installs packages": ("uses the network", "changes files"),
    "changes packages of the system": ("uses the network",),
    "changes files": (_OF_GIT,),
}
"""Consequences that need no mention beside another one."""
ORDINARY = frozenset((_OF_PROJECT, "runs a script", "changes files", _OF_GIT, MAY_CHANGE))
"""Consequences that most of a session's questions have; all others are dangers."""


def consequences_of(words: Sequence[str], *, runs_project: bool = False) -> tuple[str, ...]:
    """Return the known consequences of a simple command, the worst first.

    Args:
        words: the command's name and its arguments.
        runs_project: True if the name is that of a program in the workspace.
    """
    return sorted_consequences([*([_OF_PROJECT] if runs_project else []), *_of_words(words)])


def runs_input(words: Sequence[str]) -> bool:
    """True if a command may run the text that it reads or that its words hold."""
    name = canonical_name(words[0]) if words else ""
    return name in SHELLS or name in INTERPRETERS or name in ("eval", "source", ".")


def sorted_consequences(found: Iterable[str]) -> tuple[str, ...]:
    """Return consequences without duplicates and without those that another one implies, the worst first."""
    known = set(found)
    implied = {less for one in known for less in _IMPLIES.get(one, ())}
    return tuple(one for one in _WORST_FIRST if one in known - implied)


def severity(consequences: Sequence[str]) -> int:
    """Return the place of the worst consequence among all, from 0; the worse, the smaller."""
    return _WORST_FIRST.index(consequences[0]) if consequences else len(_WORST_FIRST)


def _of_words(words: Sequence[str]) -> Iterator[str]:
    if not words:
        return
    name = words[0].rpartition("/")[2]
    rest = strip_git_options(words[1:]) if name == "git" else list(words[1:])
    yield from (text for text, programs in _PROGRAMS.items() if name in programs)
    subcommand = next((word for word in rest if not word.startswith(("-", "+"))), "")
    yield from (text for text, tools in _SUBCOMMANDS.items() if subcommand in tools.get(name, ()))
    line = " ".join((name, *rest))[:_LONGEST_READ]
    yield from (text for text, pattern in _OPTIONS if pattern.match(line))
    if name == "git":
        yield _OF_GIT
    elif "/" in words[0] and not words[0].startswith("/"):
        yield _OF_PROJECT
    elif runs_input(words):
        yield "runs a script"
