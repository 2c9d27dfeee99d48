"""The environment of child processes: without secrets, pagers and prompts (safety promise 9)."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from tui_agent.git.git_program import OFFLINE, READ_ONLY_SETTINGS, settings_of_every_git, with_settings
from tui_agent.protocol.programs import outside_search_path

_SECRET = re.compile(r"(_KEY|APIKEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|_PWD|_PAT)$", re.IGNORECASE)
_OURS = ("ANTHROPIC_", "TUI_AGENT_")
_ORDINARY = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSH_AUTH_SOCK",
     "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "VIRTUAL_ENV", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
     "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"}
)  # fmt: skip
"""Variables that programs need. They hold no secret, although settings may build a value from them, such as the path of
a file with a token."""
_SCREEN = frozenset({"TEXTUAL_DRIVER"})
"""Variables for the app's own screen, which another program of its kind would take for its own."""
_withheld: set[str] = set()

_SHELL_HOOKS = frozenset(
    {"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "BASH_COMPAT", "POSIXLY_CORRECT", "CDPATH", "GLOBIGNORE", "EXECIGNORE",
     "PROMPT_COMMAND", "PS4", "OLDPWD"}
)  # fmt: skip
_SHELL_FUNCTION = "BASH_FUNC_"

_QUIET = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "LESSOPEN": "",
    "LESSSECURE": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
}

_SEARCH_PATHS = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH", "PERL5LIB", "RUBYLIB", "NODE_PATH")
"""Search paths for programs, libraries and modules."""
_STEERING = frozenset(
    {"LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "GCONV_PATH", "PERL5OPT", "RUBYOPT", "NODE_OPTIONS",
     "LUA_INIT", "PYTHONHOME", "PYTHONSTARTUP", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
     "RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "TAR_OPTIONS", "UNZIP", "UNZIPOPT", "ZIPINFO", "ZIPINFOOPT", "PS_FORMAT",
     "PS_PERSONALITY", "MAGIC"}
)  # fmt: skip
"""Variables that give a program options, settings or code in addition to its command line."""
_GIT_KEPT = re.compile(r"GIT_(?:AUTHOR_|COMMITTER_|CONFIG_(?!PARAMETERS)|TERMINAL_PROMPT|PAGER|EDITOR|ASKPASS)")
"""Git's variables that neither point to a repository nor name a program to run."""


def withhold(names: Iterable[str]) -> None:
    """Let no child process inherit these variables, which settings name as secrets, from now on.

    Those that programs need are left: a server of a project must not take `PATH` from every command.

    This is for the whole program, because all its sessions share one environment.
    """
    _withheld.update(name for name in names if name not in _ORDINARY)


def child_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a child process.

    It is the inherited one without secrets, without variables that change how a shell reads its command (start files,
    exported functions, shell options) or choose the app's own screen, and with pagers, prompts and colours off.
    """
    kept = {name: value for name, value in inherited.items() if is_inherited(name)}
    return with_settings(kept | _QUIET, settings_of_every_git())


def read_only_environment(environment: Mapping[str, str], workspace: Path) -> dict[str, str]:
    """Return the environment for a command that runs without asking because it only reads.

    Programs, libraries and modules come from outside the workspace, and no variable adds options to the command. Git
    uses the repository the command names, fetches nothing and takes no lock; as far as settings can prevent it, git
    also starts no program that the repository's own settings name.
    """
    kept = {name: value for name, value in environment.items() if not _steers(name)}
    for name in _SEARCH_PATHS:
        if name in kept and (path := outside_search_path(kept.pop(name), workspace)):
            kept[name] = path
    # A search path without entries would mean the current directory.
    kept.setdefault("PATH", os.defpath)
    return with_settings(kept, READ_ONLY_SETTINGS) | OFFLINE


def _steers(name: str) -> bool:
    return name in _STEERING or (name.startswith("GIT_") and not _GIT_KEPT.match(name))


def is_inherited(name: str) -> bool:
    """True if children inherit a variable: no secret, not for the app's own screen, and without effect on a shell."""
    if name in _SHELL_HOOKS | _SCREEN or name in _withheld or name.startswith((*_OURS, _SHELL_FUNCTION)):
        return False
    return not (_SECRET.search(name) or name.upper() == "KEY")
