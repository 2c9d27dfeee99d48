"""Effect of filters in a pipe, and of commands behind `xargs`, on the names that pass through them."""

import re
from collections.abc import Sequence

from .commands.argv import is_known
from .commands.catalogue import canonical_name
from .listing_output import is_line_filter
from .printed_names import passes_on
from .shell_syntax import SimpleCommand, names
from .shell_wrappers import unwrap

_AWK_FIELD = re.compile(r"\{ ?print \$(?:\d+|NF) ?;? ?\}")
_SED_LINES = re.compile(r"\d+q|\d+(?:,\d+)?p|\$p|/[^/\\]*/d|s\|\^\\\./\|\||s/\^\\\.\\///|s#\^\\\./##")
_BLANKS_ONLY = names(r"\n \0 \r \000 \t") | {" "}


def is_name_filter(words: Sequence[str]) -> bool:
    """True if a filter prints some of the names it reads, each whole or split at blanks."""
    name, *rest = words
    match name:
        case "awk":
            return len(rest) == 1 and bool(_AWK_FIELD.fullmatch(rest[0]))
        case "cut":
            return "".join(rest).replace("-d ", "").lstrip("-f").isdecimal()
        case "sed":
            return all(_SED_LINES.fullmatch(word) for word in rest if word not in ("-n", "-e"))
        case "tr":
            return all(word in _BLANKS_ONLY for word in rest if word != "-d")
        case "tee":
            return all(map(is_known, rest))
        case "sort" | "uniq":
            return not any(re.match(r"-[A-Za-z]*o|--out|--comp|--files", word) for word in rest)
        case _:
            return is_line_filter(words)


def takes_first_field(words: Sequence[str]) -> bool:
    """True if a filter prints the text before the first colon."""
    if words[0] == "cut":
        return sorted("".join(words[1:]).replace(" ", "")) == sorted("-d:-f1")
    return words[0] == "awk" and list(words[1:]) in (["-F:", "{print $1}"], ["-F", ":", "{print $1}"])


def prints_fragments(words: Sequence[str]) -> bool:
    """True if a filter prints pieces of its input and nothing else."""
    name, *rest = words
    if name == "tr":
        return not re.search(r"[A-Za-z.]", " ".join(rest).replace("A-Z", "").replace("a-z", "").replace("-d", ""))
    return name == "cut" or (name in ("head", "tail") and any(word.startswith("-c") for word in rest))


def xargs_passes_names(command: SimpleCommand, words: Sequence[str]) -> bool:
    """True if `xargs` runs a command that prints some of the names it receives."""
    if canonical_name(words[0]) != "xargs":
        return False
    wrapping = unwrap(command)
    if wrapping is None or not wrapping.inner_commands:
        return len(words) == 1
    inner = [word.value for word in wrapping.inner_commands[0].command.words if word.is_fixed]
    return bool(inner) and passes_on(inner)
