"""`awk` programs that can neither start a program nor open a file.

Strings and patterns are removed first; the rest may contain nothing that writes, and each `>` must be a comparison.
"""

import re
from collections.abc import Sequence

from tui_agent.permissions.shell.syntax import PIPE

from .catalogue import facts_of
from .reads import Reads, parse_options

_WORDS = re.compile(
    r"\b(?:system|getline|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|include|load|namespace|exec)\b"
)
_PRINT = re.compile(r"\bprintf?\b")
_TEXT = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_PATTERN = re.compile(r"/((?:[^/\\\n]|\\[^\n])*)/")
_UNCLOSED = re.compile(r"\[\^?\]?[^\]]*\Z")
_BEFORE_PATTERN = re.compile(
    r"(?:[(,{};!~&|=\n]|\b(?:printf?|return|in|else|do|exit|case|delete))[ \t\n]*\Z|\A[ \t\n]*\Z"
)
_DIVIDED = re.compile(r"(?<!\blength)[\w\]][ \t]*\Z")
_BANNED = frozenset("@`#\\")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BORDERS = frozenset(";{}")


def awk_reads(words: Sequence[str]) -> Reads | None:
    """Return the files that `awk` (with its name) reads, or None if its program may do more than print."""
    facts = facts_of("awk")
    options = parse_options(facts, words[1:]) if facts else None
    if options is None or not options.operands:
        return None
    program, *operands = options.operands
    code = _without_texts(program)
    if code is None or not _BANNED.isdisjoint(code) or _WORDS.search(code):
        return None
    # A single `|` starts a program.
    if "|" in code.replace("||", "") or not _only_compares(code):
        return None
    return Reads(tuple(word for word in operands if word not in ("-", PIPE) and not _ASSIGNMENT.match(word)))


def _without_texts(program: str) -> str | None:
    """Return the program with empty strings and patterns, or None if their borders are not certain."""
    code = ""
    at = 0
    while at < len(program):
        letter = program[at]
        if letter == '"':
            found = _TEXT.match(program, at)
        elif letter == "/" and _BEFORE_PATTERN.search(code):
            found = _PATTERN.match(program, at)
            if found and _UNCLOSED.search(re.sub(r"\\.", "", found.group(1))):
                return None
        elif letter == "/" and not _DIVIDED.search(code) and "/" in program[at + 1 :]:
            return None  # A division or the start of a pattern.
        else:
            code += letter
            at += 1
            continue
        if found is None:
            return None
        code += '""'
        at = found.end()
    return code


def _only_compares(code: str) -> bool:
    """True if no `>` can be the one of `print … > file`: each is in brackets or in a statement that does not print."""
    depth = start = 0
    for at, letter in enumerate(code):
        if letter == "(":
            start = at if depth == 0 else start
            depth += 1
        elif letter == ")":
            depth = max(depth - 1, 0)
        elif letter == ">":
            first = start if depth else max((code.rfind(border, 0, at) for border in _BORDERS), default=0)
            if _PRINT.search(code, max(first, 0), at):
                return False
    return True
