"""Rules to offer with an approval, the narrowest that would allow such a call again, and checks of typed ones."""

import os
import re
import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tui_agent.git.protected_tree import obeyed_name
from tui_agent.permissions.commands.script_reader import SimpleCommand, names, read_script
from tui_agent.permissions.commands.wrappers import SHELLS, WRAPPERS, base_name
from tui_agent.permissions.rules.path_resolution import is_within
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool import CommandSubject, PathSubject, Subject

from .patterns import BORDER, CommandPattern, command_patterns
from .rule import Rule

_NEVER_OFFERED = names(
    "python python3 node deno bun perl ruby php lua awk gawk sed tclsh R Rscript java rm rmdir shred unlink su curl "
    "wget ssh scp sftp nc ncat netcat socat telnet dd mkfs eval source . find chmod chown chgrp kill pkill killall "
    "crontab at batch docker podman kubectl helm aws gcloud az terraform ansible osascript open powershell pwsh "
    "nix-shell npx bunx uvx pipx export alias trap unset declare typeset read let set shopt tar zip unzip rsync "
    "vi vim emacs less man gdb"
)
"""Programs for which no rule with any arguments is stored: it would allow nearly anything."""
_OF_PROJECT = (
    *("make", "npm test", "npm run *", "npm ci", "pnpm test", "pnpm run *", "yarn test", "yarn run *", "cargo build"),
    *("cargo check", "cargo test", "cargo clippy", "go build", "go test", "go vet", "pytest", "tox", "nox", "just *"),
    *("python -m pytest", "python3 -m pytest", "uv run pytest", "poetry run pytest", "dotnet test", "mvn test"),
)
"""Commands that run the code of the project anyway, so that a rule for them with any arguments allows no more; `*` is
one plain word. Only for these is such a rule offered."""
_RUNS_ANYTHING = names("exec run run-script x dlx shell sh eval script repl console ssh do start")
_PLAIN = re.compile(r"[\w.:-]*\w\Z")
_PLAIN_VALUE = re.compile(r"[\w./:=@,+-]*\Z")
_LOADS = re.compile(
    r"LD_|DYLD_|GIT_|BASH_|ENV\Z|PATH\Z|IFS\Z|SHELL|\w*(?:PRELOAD|OPTIONS|OPTS|STARTUP|PAGER|EDITOR|_CMD|_COMMAND)"
)
"""Variables with which programs load or run something."""
_RUN_ANYTHING = SHELLS | names("sudo doas env xargs exec command builtin eval parallel watch chroot unshare busybox")
"""Programs that run what their other words name, and for which no rule is stored."""
_EXACT_ONLY = {
    **dict.fromkeys(("rm", "rmdir"), re.compile(r"-[rRfvd]+\Z|(?!/)(?!.*\.\.)[\w./-]*\w[\w./-]*\Z")),
    "curl": re.compile(r"-[sSfiIkLvg]+\Z|[\w./:][\w./:=?&%+,-]*\Z"),
}
"""Programs for which only the exact words are offered, and patterns for these words."""
_OWN_SERVER = re.compile(r"https?://(?:localhost|127\.0\.0\.1)(?::\d+)?/")
_NO_SUBCOMMANDS = names("git cp mv mkdir touch ln tee install truncate")
"""Programs whose second word does not limit what any arguments after it can do."""
_PATH_TOOLS = names("edit write read")
_STARS = re.compile(r"(?<!\\)[*?\[]")


@dataclass(frozen=True, slots=True)
class Offer:
    """Rules that may be stored for one part of a call."""

    proposed: str
    choices: tuple[str, ...]
    """Every rule, narrowest first, including the proposed one."""


def offer_for_command(tool: str, text: str) -> Offer | None:
    """Return the rules for one simple command, or None if no rule should be stored.

    These are the exact words; for a command that runs the project's own code, these with any arguments; for a `curl` to
    a server of this machine, these with any path of it.
    """
    command = _simple_command(text)
    before = _assigned(command) if command else None
    if command is None or before is None:
        return None
    words = command.argv
    # They mean something in a pattern, and no spelling of the rule would be exact.
    is_open = any(letter in "".join(words) for letter in "\\*\n")
    if is_open or not (_may_be_exact(words) or may_be_stored(words)):
        return None
    exact = f"{tool}({before}{' '.join(shlex.quote(word) for word in words)})"
    if host := _own_server(words):
        server = f"{tool}({before}{' '.join((*words[:-1], host))}*)"
        return Offer(server, (exact, server))
    count = _prefix_length(words)
    if not count:
        return Offer(exact, (exact,))
    prefix = f"{tool}({before}{' '.join(words[:count])}:*)"
    return Offer(prefix, (exact, prefix))


def offer_for_path(tool: str, path: str, workspace: str) -> Offer | None:
    """Return the rules for one path, absolute and without links, or None if no pattern can express it.

    These are: the path, its folder, and in the workspace the workspace. The widest is proposed, so that the next change
    asks nothing; it never covers what other programs obey, nor installed packages. Outside a folder is offered for
    reads, but not near the user's secrets.
    """
    if any(letter in "\n\r\\" for letter in path) or not path.isprintable() or path.endswith(" "):
        return None
    is_inside = path.startswith(workspace + "/")
    pattern = path.removeprefix(workspace) if is_inside else f"/{path}"
    pattern = escape_path(pattern)
    above = pattern.rpartition("/")[0]
    # `edit` covers `write`, too, so that the next change of either kind needs no question.
    wider = "edit" if tool == "write" else tool
    if is_inside and obeyed_name(path.removeprefix(workspace)) is None:
        choices = (pattern, f"{above}/**", "/**")
    elif tool == "read" and not is_inside and _is_plain_place(os.path.dirname(path)):
        choices = (pattern, f"{above}/**")
    else:
        choices = (pattern,)
    first, *others = dict.fromkeys(choices)
    rules = (f"{tool}({first})", *(f"{wider}({one})" for one in others))
    return Offer(rules[-1], rules)


def escape_path(path: str) -> str:
    """Return a pattern that matches one path."""
    return re.sub(r"([*?\[\]])", r"\\\1", path)


def _is_plain_place(folder: str) -> bool:
    """True if everything in a folder outside the workspace may be read because one file of it may."""
    home = os.path.realpath(os.path.expanduser("~"))
    # Neither the root, nor a folder that has the home in it, nor one with hidden settings.
    return folder.count("/") > 1 and not is_within(home, folder) and obeyed_name(folder) is None


def _prefix_length(words: Sequence[str]) -> int:
    """Return the number of words that a rule with any arguments may begin with; 0 if none is offered."""
    for known in _OF_PROJECT:
        pattern = known.split()
        start = words[: len(pattern)]
        if len(start) == len(pattern) and all(
            word == one or (one == "*" and _PLAIN.match(word) and word[0] != "-")
            for word, one in zip(start, pattern, strict=True)
        ):
            return len(pattern)
    return 0


def _own_server(words: Sequence[str]) -> str:
    """Return the start of the URLs of a server of this machine that a command asks for one, or an empty text."""
    # With `-L` the server could send the program on to any host.
    is_plain = words[0] == "curl" and not any(word.startswith("-") and "L" in word for word in words)
    found = [_OWN_SERVER.match(word) for word in words[1:] if not word.startswith("-")]
    return found[0][0] if is_plain and len(found) == 1 and found[0] and words[-1].startswith(found[0][0]) else ""


def may_be_prefix(words: Sequence[str]) -> bool:
    """True if the user may store a rule that allows these words with any arguments."""
    if _prefix_length(words):
        return True
    if not may_be_stored(words) or words[0] in WRAPPERS or len(words) < 2 + (words[0] in _NO_SUBCOMMANDS):
        return False
    is_subcommand = words[1][0].isalpha() and _PLAIN.match(words[1]) is not None and "." not in words[1]
    return is_subcommand and words[1] not in _RUNS_ANYTHING


def _may_be_exact(words: Sequence[str]) -> bool:
    pattern = _EXACT_ONLY.get(words[0])
    return pattern is not None and all(map(pattern.match, words[1:]))


def may_be_stored(words: Sequence[str]) -> bool:
    """True if a rule for a command with these first words may be stored."""
    if _prefix_length(words):
        return True
    is_runner = words[0] in ("npm", "pnpm", "yarn") and words[1:2] in (("exec",), ("x",), ("dlx",))
    return not is_runner and base_name(words[0]) not in (_NEVER_OFFERED | _RUN_ANYTHING)


def _assigned(command: SimpleCommand) -> str | None:
    """Return the assignments before a command as a rule spells them; None if a rule should not."""
    pairs = [word.value.partition("=") for word in command.assignments]
    if not all(
        _PLAIN_VALUE.match(value) and name.isidentifier() and not _LOADS.match(name) for name, _, value in pairs
    ):
        return None
    return "".join(f"{name}={value} " for name, _, value in pairs)


def _simple_command(text: str) -> SimpleCommand | None:
    """Return the only command of a plain text, or None."""
    script = read_script(text)
    return script.commands[0] if script.is_plain and len(script.commands) == 1 else None


def refusal_of_line(line: str, tool: str, subject: Subject | None, offered: Collection[str]) -> str:
    """Return why a typed rule may not be stored, in words for the user; empty if it may."""
    try:
        rule = Rule.parse("allow", line)
    except ConfigurationError as error:
        return str(error)
    # What the question itself offers needs no second check.
    if rule.text in offered:
        return ""
    tools = {Rule.parse("allow", text).tool for text in offered}
    if rule.tool not in tools:
        return f"A rule for this call must be one for {' or '.join(sorted(tools))}, not for {rule.tool}."
    if isinstance(subject, CommandSubject) and rule.tool == tool:
        return _refusal_of_command(rule)
    if isinstance(subject, CommandSubject | PathSubject) and rule.tool in _PATH_TOOLS:
        return _refusal_of_path(rule)
    return f"A rule for {tool} cannot be changed, only taken as proposed."


def _refusal_of_command(rule: Rule) -> str:
    if rule.pattern is None:
        return f"`{rule.tool}` alone would allow every command; name one, as in `{rule.tool}(make test:*)`."
    # Quotes have two readings, and the rule matches what either of them means; the last one is without quotes.
    refusals = (_refusal_of_pattern(pattern) for pattern in reversed(command_patterns(rule.pattern)))
    return next((refusal for refusal in refusals if refusal), "")


def _refusal_of_pattern(pattern: CommandPattern) -> str:
    if pattern.is_everything:
        return "This would allow every command; name one, as in `make test:*`."
    first, *others = pattern.pieces
    if others:
        return "A * would match any text there. Only `:*` at the end is possible: any arguments may follow."
    words = first.split(BORDER)
    name = base_name(words[0])
    # With a variable in front the first word would no longer be the program.
    if "=" in words[0]:
        return "A rule cannot begin with a variable; name the command first."
    if not may_be_stored(words):
        return f"No rule for `{name}` is stored from here: it can run or change nearly anything."
    if pattern.is_prefix and not may_be_prefix(words):
        return (
            f"`{' '.join(words)}` with any arguments allows too much. Name more of the command, "
            "or spell it out whole, without `:*`."
        )
    return ""


def _refusal_of_path(rule: Rule) -> str:
    pattern = (rule.pattern or "").strip()
    if not pattern:
        return f"`{rule.tool}` alone would allow every file; name some, as in `{rule.tool}(/src/**)`."
    if pattern.startswith(("//", "~")):
        what = "a pattern" if _STARS.search(pattern) else "another path"
        return f"Outside the workspace only the proposed path can be allowed, not {what}."
    return ""
