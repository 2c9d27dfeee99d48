"""`sed` scripts that only print, delete, quit, hold and substitute.

The commands that read or write files or run something (`r R w W e`, and those flags of `s`) are unknown to this
parser, so it rejects every script with one of them.
"""

import re
from collections.abc import Sequence

from tui_agent.permissions.shell.syntax import PIPE

from .catalogue import facts_of
from .reads import Reads, parse_options

_BLANKS = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n;]|#[^\n]*)*")
_NUMBER = re.compile(r"\d+(?:~\d+)?|\$")
_RANGE_END = re.compile(r"[+~]\d+")
_PLAIN = re.compile(r"[dDgGhHnNpPxzF=]|[qQl][ \t]*\d*")
_LABELLED = re.compile(r":[ \t]*[\w-]+|[btT][ \t]*[\w-]*")
_TEXT = re.compile(r"[aic][ \t]*\\?[ \t]*[^\s\\][^\n\\]*(?=\n|\Z)")
_MATCH_FLAGS = re.compile(r"[IM]*")
_FLAGS = re.compile(r"[gpiImM0-9]*")
_DELIMITERS = frozenset("/|,#:@!%_+=~;")
"""Allowed separators between the parts of `s` and `y`."""
_END = re.compile(r"[ \t]*(?=[;\n}#]|\Z)")


def sed_reads(words: Sequence[str]) -> Reads | None:
    """Return the files that `sed` (with its name) reads, or None if its script may do more than print."""
    facts = facts_of("sed")
    options = parse_options(facts, words[1:]) if facts else None
    if options is None:
        return None
    scripts = [*options.given.get("-e", ()), *options.given.get("--expression", ())]
    operands = options.operands
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not scripts or not _is_harmless("\n".join(scripts)):
        return None
    return Reads(tuple(operand for operand in operands if operand not in ("-", PIPE)))


def _is_harmless(script: str) -> bool:
    """True if every command of a script is known, to the last character."""
    at = depth = 0
    while (at := _past(_BETWEEN, script, at)) < len(script):
        if script[at] == "}":
            depth -= 1
            end = at + 1
        else:
            start = _past_addresses(script, at)
            if start is not None and script[start : start + 1] == "{":
                depth += 1
                at = start + 1
                continue
            end = _past_command(script, start) if start is not None else None
        if end is None or depth < 0 or not _END.match(script, end):
            return False
        at = end
    return depth == 0


def _past(pattern: re.Pattern[str], script: str, at: int) -> int:
    match = pattern.match(script, at)
    return match.end() if match else at


def _past_addresses(script: str, at: int) -> int | None:
    """Return the offset of the command after `first,last!`, or None if it is not certain."""
    end = _past_address(script, at)
    if end is None:
        return None
    comma = _past(_BLANKS, script, end)
    if end > at and script[comma : comma + 1] == ",":
        start = _past(_BLANKS, script, comma + 1)
        end = _past(_RANGE_END, script, start)
        end = end if end > start else _past_address(script, start)
        if end is None or end == start:
            return None
    at = _past(_BLANKS, script, end)
    while script[at : at + 1] == "!":
        at = _past(_BLANKS, script, at + 1)
    return at


def _past_address(script: str, at: int) -> int | None:
    if script[at : at + 1] != "/":
        return _past(_NUMBER, script, at)
    end = _past_delimited(script, at, "/")
    return _past(_MATCH_FLAGS, script, end) if end is not None else None


def _past_command(script: str, at: int) -> int | None:
    letter = script[at : at + 1]
    if letter in ("s", "y") and script[at + 1 : at + 2] in _DELIMITERS:
        mark = script[at + 1]
        middle = _past_delimited(script, at + 1, mark)
        end = _past_delimited(script, middle - 1, mark) if middle is not None else None
        return end if end is None or letter == "y" else _past(_FLAGS, script, end)
    for pattern in (_PLAIN, _LABELLED, _TEXT):
        if match := pattern.match(script, at):
            return match.end()
    return None


def _past_delimited(script: str, at: int, mark: str) -> int | None:
    """Return the offset after the text between two delimiters, the first at `at`, or None if the text is ambiguous."""
    start = at = at + 1
    while at < len(script) and script[at] != mark:
        if script[at] == "\n" or script[at : at + 2] == "\\\n":
            return None
        at += 2 if script[at] == "\\" else 1
    if at >= len(script):
        return None
    # Some versions of sed treat a delimiter inside brackets as text.
    opened = script.rfind("[", start, at)
    return None if opened >= 0 and script.find("]", opened, at) < 0 else at + 1
