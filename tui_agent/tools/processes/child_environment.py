"""The environment of child processes: without secrets, pagers and prompts (safety promise 9)."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tui_agent.git.git_program import OFFLINE, READ_ONLY_SETTINGS, settings_of_every_git, with_settings
from tui_agent.protocol.programs import outside_search_path
from tui_agent.protocol.secret_variables import is_secret_variable

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
_passed: set[str] = set()
_HARMLESS = re.compile(
    r"""PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|TZ|LANG|LANGUAGE|LC_[A-Z]+|TMPDIR|HOSTNAME|COLUMNS|LINES|COLORTERM|SHLVL
    | CI|(?:FORCE|CLICOLOR)(?:_\w+)?|LS_COLORS|EDITOR|VISUAL|DEBUG|VERBOSE|IS_SANDBOX|SOURCE_DATE_EPOCH|DEBIAN_FRONTEND
    | XDG_(?:\w+_HOME|DATA_DIRS|CONFIG_DIRS)|(?i:(?:https?|all|no|ftp)_proxy)|SSL_CERT_(?:FILE|DIR)
    | (?:CURL|REQUESTS|AWS)_CA_BUNDLE|GIT_(?:(?:AUTHOR|COMMITTER)_\w+|SSL_CAINFO)|NIX_\w+|LOCALE_ARCHIVE|HOMEBREW_\w+
    | VIRTUAL_ENV(?:_PROMPT)?|(?:PYTHON|MYPY)\w*|(?:PYENV|PIP|UV|POETRY|PDM|PIPX|HATCH|PYTEST|TOX|COVERAGE)_\w+
    | (?:HYPOTHESIS|RUFF|CONDA|MAMBA|_CE|OMP|OPENBLAS|MKL|CUDA|XLA|TF_CPP)_\w+|TOKENIZERS_PARALLELISM|MPL\w+
    | NODE_(?:ENV|PATH|OPTIONS|EXTRA_CA_CERTS)|(?:NVM|FNM|VOLTA|COREPACK|JEST)_\w+|PNPM_HOME|BUN_INSTALL
    | DENO_(?:DIR|INSTALL\w*)|(?i:npm_config_(?:cache|prefix|offline|registry))|PLAYWRIGHT_BROWSERS_PATH
    | GO(?:PATH|ROOT|BIN|CACHE|MODCACHE|FLAGS|OS|ARCH|PROXY|SUMDB|TOOLCHAIN|111MODULE|1\w+)|CGO_\w+|CARGO_\w+|RUST\w*
    | (?:JAVA|JDK|M2|COMPOSER)_HOME|(?:MAVEN|GRADLE|SDKMAN|ANDROID|KOTLIN|SBT)_\w+|GEM_(?:HOME|PATH)|RUBY\w*
    | BUNDLE_(?:PATH|GEMFILE|JOBS)|(?:RBENV|ASDF|MISE|RTX|DOTNET|GHCUP|JULIA|WSL)_\w+|OPAM\w*|PERL5LIB
    | (?:LD_)?LIBRARY_PATH|PKG_CONFIG\w*|CC|CXX|CPP|AR|LD|RANLIB|(?:C|CXX|CPP|LD|MAKE)FLAGS|MAKELEVEL
    | (?:CMAKE|CTEST|CCACHE)_\w+|SCCACHE_DIR|(?:RAILS|RACK|APP|FLASK|DJANGO)_(?:ENV|APP|DEBUG|SETTINGS_MODULE)""",
    re.VERBOSE,
)
"""Variables known to be harmless: in the sandbox, a command has these and no other one of the user's."""
_OF_TERMINAL = re.compile(
    r"""_|PS\d|MAIL|STY|TMUX\w*|TERM\w*|WINDOWID|WINDOWPATH|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|SESSION_MANAGER|I?LESS\w*|PAGER
    | (?:XDG|DBUS|SSH|GNOME|KDE|GTK|GDM|QT|DESKTOP|VTE|KITTY|ALACRITTY|WEZTERM|KONSOLE|ITERM|VSCODE|SYSTEMD|JOURNAL)_\w+
    | GPG_(?:TTY|AGENT_INFO)|INVOCATION_ID|MANAGERPID|MEMORY_PRESSURE_\w+|HIST\w+""",
    re.VERBOSE,
)
"""Variables of a terminal or desktop, of which the sandbox shows nothing: not worth a note."""
_WORD = re.compile(r"\w+")
_MOST_GIT_SETTINGS = 1_000

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
_GIT_SETTING = re.compile(r"GIT_CONFIG_(?:COUNT|KEY_\d+|VALUE_\d+)$")
_GIT_KEPT = re.compile(r"GIT_(?:AUTHOR_|COMMITTER_|CONFIG_(?!PARAMETERS)|TERMINAL_PROMPT|PAGER|EDITOR|ASKPASS)")
"""Git's variables that neither point to a repository nor name a program to run."""


def withhold(names: Iterable[str]) -> None:
    """Let no child process inherit these variables, which settings name as secrets, from now on.

    Those that programs need are left: a server of a project must not take `PATH` from every command.

    This is for the whole program, because all its sessions share one environment.
    """
    _withheld.update(name for name in names if name not in _ORDINARY)


def pass_on(names: Iterable[str]) -> None:
    """Let every child process inherit these variables, whatever they hold; they replace those of an earlier call."""
    _passed.clear()
    _passed.update(names)


def child_environment(inherited: Mapping[str, str], *, is_confined: bool = False) -> dict[str, str]:
    """Return the environment for a child process.

    It is the inherited one without secrets, without variables that change how a shell reads its command (start files,
    exported functions, shell options) or choose the app's own screen, and with pagers, prompts and colours off.

    Args:
        is_confined: True for a command in the sandbox, which only has variables known to be harmless.
    """
    kept = {name: value for name, value in inherited.items() if _is_inherited(name, value, is_confined=is_confined)}
    own = () if is_confined else tuple(_git_settings(inherited))
    # Ours last: a pager or an editor of the user would wait for keys.
    return with_settings(kept | _QUIET, (*own, *settings_of_every_git()))


def withheld_variables(inherited: Mapping[str, str], command: str, *, is_confined: bool = False) -> list[str]:
    """Return the names of the user's variables that a command lacks and may need, those that look like secrets first.

    Others count only if the command names them, or a program whose name they begin with. None is a key of an endpoint
    or a server, or for a shell, a terminal or this program.
    """
    words = {word.upper() for word in _WORD.findall(command)}
    lacking = {
        name: name not in _ORDINARY and is_secret_variable(name, value)
        for name, value in inherited.items()
        if not (_is_ours(name) or name in _withheld or _GIT_SETTING.match(name))
        and not _is_inherited(name, value, is_confined=is_confined)
    }
    names = [
        name
        for name, is_secret in lacking.items()
        if is_secret or (not _OF_TERMINAL.fullmatch(name) and {name, name.partition("_")[0]} & words)
    ]
    return sorted(names, key=lambda name: (not lacking[name], name))


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


def _git_settings(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the settings of git that variables hold, without secrets."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    # The number is what someone wrote into a variable.
    for number in range(min(int(count), _MOST_GIT_SETTINGS) if count.isascii() and count.isdigit() else 0):
        key, value = (environment.get(f"GIT_CONFIG_{part}_{number}", "") for part in ("KEY", "VALUE"))
        if key and not is_secret_variable(key, f"{key} {value}"):
            yield key, value


def _steers(name: str) -> bool:
    return name in _STEERING or (name.startswith("GIT_") and not _GIT_KEPT.match(name))


def _is_inherited(name: str, value: str, *, is_confined: bool) -> bool:
    """True if children inherit a variable: no secret, not for the app's own screen, and without effect on a shell."""
    if name in _passed and not _reaches_shell(name):
        return True
    if _is_ours(name) or name in _withheld or _GIT_SETTING.match(name):
        return False
    if name in _ORDINARY and not is_confined:
        return True
    return not is_secret_variable(name, value) and (not is_confined or _HARMLESS.fullmatch(name) is not None)


def _is_ours(name: str) -> bool:
    """True for a variable that only this program or a shell reads."""
    return _reaches_shell(name) or name.startswith(_OURS)


def _reaches_shell(name: str) -> bool:
    return name in _SHELL_HOOKS | _SCREEN or name.startswith(_SHELL_FUNCTION)
