"""`awk` programs: those that can neither start a program nor open a file, and what the others write and run.

Strings and patterns are removed first; the rest may contain nothing that writes, and each `>` must be a comparison.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_agent.permissions.shell.syntax import MARKS, PIPE, UNKNOWN, SimpleCommand

from .argv import exact_arguments, parse_arguments
from .catalogue import facts_of
from .invocation import Reads

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
_OUTPUT = re.compile(r"[>@]|(?<!\|)\|(?!\|)|\bsystem\b")
"""Everything with which a program may write a file, run a program, or call a function by a computed name."""
_END = r"[ \t]*(?:[;})\n]|\Z)"
_FILE = re.compile(rf'>>?[ \t]*"(\d+)"{_END}')
_SYSTEM = re.compile(r'system[ \t]*\([ \t]*"(\d+)"[ \t]*\)')
_INTO = re.compile(rf'\|&?[ \t]*"(\d+)"{_END}')
_OUT_OF = re.compile(r'(?:\A|[;{}()&|!=,\n])[ \t]*"(\d+)"[ \t]*\|&?[ \t]*getline\b')
_PIPE = re.compile(r"(?<!\|)\|(?!\|)&?[ \t]*(getline\b)?")
_QUOTED = re.compile(r"\\([\"/])")


@dataclass(frozen=True, slots=True)
class AwkOutputs:
    """Files that a program writes and commands that it runs."""

    files: tuple[str, ...] = ()
    """Files that it writes; `UNKNOWN` if only its run determines one."""
    scripts: tuple[str, ...] = ()
    """Commands that a shell runs for it."""
    is_open: bool = False
    """True if only its run determines some commands."""


def awk_outputs(words: Sequence[str]) -> AwkOutputs:
    """Return what the program of an `awk` command (with its name) writes and runs; nothing if it is in a file."""
    facts = facts_of("awk")
    options = parse_arguments(facts, words[1:]) if facts else None
    if facts is None or options is None or options.has("-f", "--file"):
        return AwkOutputs()
    # Behind an option that is not in the facts, such as `-e`, each operand may be a program.
    is_plain = options.flags <= facts.harmless
    found = [_outputs(program) for program in options.operands[: 1 if is_plain else None]]
    # `-i inplace` changes its files.
    files = [] if is_plain or not options.has("-i", "--include") else options.operands
    return AwkOutputs(
        (*(file for one in found for file in one.files), *files),
        tuple(script for one in found for script in one.scripts),
        any(one.is_open for one in found),
    )


def _outputs(program: str) -> AwkOutputs:
    found = _without_texts(program.replace("\\\n", " "))
    if found is None or not MARKS.isdisjoint(program):
        may_write = program in MARKS or _OUTPUT.search(program)
        return AwkOutputs((UNKNOWN,), is_open=True) if may_write else AwkOutputs()
    code, texts = found
    files = [_text(_FILE.match(code, at), texts) for at in _written(code)]
    runs = [_text(_SYSTEM.match(code, one.start()), texts) for one in re.finditer(r"\bsystem\b", code)]
    out_of = {one.end(): one for one in _OUT_OF.finditer(code)}
    runs += [
        _text(out_of.get(one.end()) if one.group(1) else _INTO.match(code, one.start()), texts)
        for one in _PIPE.finditer(code)
    ]
    is_open = UNKNOWN in runs or "@" in code
    return AwkOutputs(tuple(files), tuple(text for text in runs if text != UNKNOWN), is_open)


def _text(found: re.Match[str] | None, texts: list[str]) -> str:
    """Return the string that a match has the number of, or `UNKNOWN`."""
    text = _QUOTED.sub(r"\1", texts[int(found.group(1))]) if found else UNKNOWN
    return UNKNOWN if "\\" in text else text


def awk_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the files that `awk` (with its name) reads, or None if its program may do more than print."""
    facts = facts_of("awk")
    options = exact_arguments(facts, words[1:]) if facts else None
    if options is None or not options.operands:
        return None
    program, *operands = options.operands
    found = _without_texts(program)
    code = found[0] if found else "@"
    if not _BANNED.isdisjoint(code) or _WORDS.search(code):
        return None
    # A single `|` starts a program.
    if "|" in code.replace("||", "") or next(_written(code), None) is not None:
        return None
    return Reads(tuple(word for word in operands if word not in ("-", PIPE) and not _ASSIGNMENT.match(word)))


def _without_texts(program: str) -> tuple[str, list[str]] | None:
    """Return the program with numbers for its strings and patterns, and the strings; None if a border is uncertain."""
    code = ""
    texts: list[str] = []
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
            # A quote in a comment begins no string.
            at = (program + "\n").index("\n", at) if letter == "#" else at + 1
            continue
        if found is None:
            return None
        code += f'"{len(texts)}"'
        texts.append(found.group()[1:-1] if letter == '"' else UNKNOWN)
        at = found.end()
    return code, texts


def _written(code: str) -> Iterator[int]:
    """Yield the place of each `>` that may be the one of `print … > file`.

    The others are in brackets or in a statement that does not print.
    """
    depth = start = 0
    for at, letter in enumerate(code):
        if letter == "(":
            start = at if depth == 0 else start
            depth += 1
        elif letter == ")":
            depth = max(depth - 1, 0)
        elif letter == ">" and code[at - 1 : at] != ">":
            first = start if depth else max((code.rfind(border, 0, at) for border in _BORDERS), default=0)
            if _PRINT.search(code, max(first, 0), at):
                yield at
