"""Rules to offer with an approval: the narrowest that would allow such a call again."""

import shlex
from collections.abc import Sequence

from tui_agent.permissions.commands.catalogue import INTERPRETERS, SHELLS, wrapper, writer
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import Sequence as CommandSequence
from tui_agent.permissions.shell.syntax import SimpleCommand, Statement, names

_NEVER = (
    INTERPRETERS
    | SHELLS
    | names(
        "rm rmdir shred unlink sudo doas su curl wget ssh scp sftp nc ncat netcat socat telnet dd mkfs eval exec "
        "source . env xargs find chmod chown chgrp kill pkill killall crontab at batch docker podman kubectl helm aws "
        "gcloud az terraform ansible osascript open powershell pwsh busybox nix-shell npx bunx uvx pipx export "
        "alias trap unset"
    )
)
"""Commands for which no rule is offered: a rule for one of them would allow nearly anything."""
_PREFIXES: dict[str, frozenset[str]] = {
    "git": names("add commit fetch pull checkout switch merge stash restore status log diff show branch tag"),
    "cargo": names("build check test clippy fmt bench doc tree"),
    "go": names("build vet test fmt mod list"),
    "npm": names("test ci ls outdated audit"),
    "pnpm": names("test ls outdated audit"),
    "yarn": names("test outdated"),
    "dotnet": names("build test restore"),
    "gh": names("pr issue run"),
}
"""Commands whose second word names the action: any arguments may follow that pair."""
_SCRIPTED = names("npm pnpm yarn")
_WHOLE = names(
    "pytest ruff mypy pyright black isort flake8 pylint tsc eslint prettier jest vitest mocha tox nox rubocop rspec "
    "golangci-lint shellcheck hadolint yamllint"
)
"""Commands that any arguments may follow."""
_RUN = ("run", "run-script")
_KNOWN = _PREFIXES.keys() | _SCRIPTED | _WHOLE
"""Commands for which a table says which words any arguments may follow."""


def rule_for_command(tool: str, text: str) -> str | None:
    """Return a rule for one simple command, or None if no rule should be stored."""
    words = _storable_words(text)
    if words is None:
        return None
    if words[0] in _SCRIPTED and len(words) > 2 and words[1] in _RUN and not _is_plain(words[2]):
        return None
    known = words[0] in _KNOWN
    lengths = [length for length in (1, 2, 3) if length <= len(words) and may_be_prefix(words[:length])]
    return _prefix(tool, words[: lengths[0]]) if known and lengths else _exactly(tool, words)


def rules_for_command(tool: str, text: str) -> tuple[str, ...]:
    """Return every rule that may be stored for one simple command, narrowest first, including `rule_for_command`'s.

    These are: the exact words; the first two words with any arguments, where the second names the action; and the name
    with any arguments, for commands with a single purpose.
    """
    words, proposed = _storable_words(text), rule_for_command(tool, text)
    if words is None or proposed is None:
        return ()
    found = [_exactly(tool, words), proposed]
    if words[0] not in _KNOWN and len(words) > 2 and may_be_prefix(words[:2]):
        found.append(_prefix(tool, words[:2]))
    return tuple(dict.fromkeys(rule for rule in found if rule is not None))


def rule_for_path(tool: str, path: str, workspace: str) -> str | None:
    """Return a rule for one path, absolute and without links, or None if no pattern can express it."""
    if any(letter in "\n\r\\" for letter in path) or not path.isprintable():
        return None
    inside = path.startswith(workspace + "/")
    pattern = "/" + path[len(workspace) + 1 :] if inside else "/" + path
    for letter in "*?[]":
        pattern = pattern.replace(letter, f"\\{letter}")
    return None if pattern.endswith(" ") else f"{tool}({pattern})"


def rules_for_path(tool: str, path: str, workspace: str) -> tuple[str, ...]:
    """Return every rule that may be stored for a path, narrowest first: the path, its folder, the workspace.

    Outside the workspace only the first.
    """
    exact = rule_for_path(tool, path, workspace)
    if exact is None:
        return ()
    if not path.startswith(workspace + "/"):
        return (exact,)
    folder = exact[: exact.rindex("/")].removeprefix(f"{tool}(")
    return tuple(dict.fromkeys((exact, f"{tool}({folder}/**)", f"{tool}(/**)")))


def _exactly(tool: str, words: list[str]) -> str | None:
    if any("*" in word or "\n" in word for word in words):
        return None  # A star in a rule would match any text.
    return f"{tool}({' '.join(shlex.quote(word) for word in words)})"


def _prefix(tool: str, words: Sequence[str]) -> str:
    return f"{tool}({' '.join(words)}:*)"


def may_be_prefix(words: Sequence[str]) -> bool:
    """True if a rule may allow these words with any arguments: proposed rules and typed ones pass the same check."""
    name = words[0]
    if not may_be_stored(words):
        return False
    if name in _WHOLE:
        return True
    if name in _KNOWN:
        is_action = len(words) > 1 and words[1] in _PREFIXES.get(name, ())
        return is_action or (name in _SCRIPTED and len(words) > 2 and words[1] in _RUN and _is_plain(words[2]))
    # The second word must look like a subcommand.
    plain = len(words) > 1 and _is_plain(words[1]) and words[1][0].isalpha() and "." not in words[1]
    return plain and _is_plain(name) and wrapper(name) is None and writer(name) is None


def _storable_words(text: str) -> list[str] | None:
    """Return the words of a simple command for which a rule may be stored, or None."""
    command = _only_command(read_script(text))
    if command is None or not command.words or not all(word.is_fixed for word in command.words):
        return None
    words = [word.value for word in command.words]
    return words if may_be_stored(words) else None


def may_be_stored(words: Sequence[str]) -> bool:
    """True if a rule for a command with these first words may be stored."""
    name = words[0].rsplit("/", 1)[-1]
    runs = any(wrapper(*words[:count]) for count in (2, 3))
    return name not in _NEVER and not runs and "\\" not in "".join(words)


def _is_plain(word: str) -> bool:
    return bool(word) and all(letter.isalnum() or letter in "._:-" for letter in word) and not word.endswith(":")


def _only_command(statement: Statement) -> SimpleCommand | None:
    while isinstance(statement, CommandSequence) and len(statement.parts) == 1:
        statement = statement.parts[0]
    return statement if isinstance(statement, SimpleCommand) else None
