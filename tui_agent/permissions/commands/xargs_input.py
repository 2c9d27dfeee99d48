"""Commands that get their files from another command: `find … -exec`, `… | xargs`, `$(…)`.

The input is a list of paths, but which of them arrive, and in how many runs, is unknown. So a command may get some
only if each path means the same at any position.
"""

import re
from collections.abc import Sequence

from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand, names

from .catalogue import canonical_name, read_only_command
from .read_only_check import collect_reads
from .reads import parse_options

_FILE = re.compile(rf".*/{UNKNOWN}\Z", re.DOTALL)
_UNEQUAL = names("tar unzip zipinfo date ps pgrep ulimit man")
"""Commands whose first operand differs in meaning from the others."""
_SCRIPTED = names("sed awk")
_BY_ZEROS = re.compile(r"-[rtpxo]*0[rtpxo]*\Z|--null\Z")
_BY_LINES = ("\\n", "\n")


def find_exec_words(words: Sequence[str]) -> list[str]:
    """Return the words of a command that `find` runs, with the directory in place of each file."""
    return [word[: -len(UNKNOWN)] if _FILE.match(word) else word for word in words]


def splits_at_nul(outer: SimpleCommand) -> bool | None:
    """True if `xargs` splits its input at NUL characters, False if at blanks, None if it reads other input."""
    values = [word.value for word in outer.words[1:]]
    if any(re.match(r"-a|--arg-file", value) for value in values):
        return None
    for at, value in enumerate(values):
        if re.match(r"-d|--delimiter", value):
            text = value.removeprefix("--delimiter=").removeprefix("-d") or "".join(values[at + 1 : at + 2])
            if text not in _BY_LINES:
                return None
    return any(_BY_ZEROS.match(value) for value in values)


def accepts_any_files(words: Sequence[str]) -> bool:
    """True if any number of files may follow these words of a read-only command without changing what it does."""
    if not words or collect_reads(words, SimpleCommand("", ())) is None:
        return False
    name = canonical_name(words[0])
    if name in _UNEQUAL:
        return False
    if name == "git":
        return "--" in words
    if name in _SCRIPTED:
        # Without a script, the first name would become the script.
        return any(not word.startswith("-") for word in words[1:])
    if name == "printf":
        return len(words) > 1
    command = read_only_command(name)
    if command is None:
        return False
    if command.reads in ("PATTERN", "SEARCH"):
        options = parse_options(command, words[1:])
        return options is not None and (bool(options.operands) or options.has(*command.gives_pattern))
    return command.reads in ("ANY", "PATHS", "LIST", "TREES")
