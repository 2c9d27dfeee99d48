"""Recognition of command lines that do nothing but record changes with git."""

import shlex

_RECORDING = frozenset(
    {"add", "branch", "checkout", "cherry-pick", "commit", "merge", "mv", "reset", "restore", "revert", "rm", "stash",
     "switch", "tag"}
)  # fmt: skip
"""Subcommands that change the repository's history, index or branches."""
_CONNECTORS = ("&&", ";")


def records_changes(command: str) -> bool:
    """Return True if a command line is only plain git commands, and one of them records changes.

    Each begins with `git` and its subcommand, and consists of literal words. False in doubt.
    """
    if not command.isprintable() or not {"$", "`", "\\"}.isdisjoint(command):
        return False
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return False
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _CONNECTORS:
            parts.append([])
        elif not set(word) <= set("();<>|&"):
            parts[-1].append(word)
        else:
            return False
    return all(len(part) > 1 and part[0] == "git" and part[1] in _RECORDING for part in parts)
