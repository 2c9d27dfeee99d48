"""Scripts of `sed` and `awk`: those that only print, and the files and programs that the others use.

`sed` scripts are parsed as GNU sed parses them. The strict parser accepts only what every sed reads alike, without a
command that reads or writes a file or runs something (`r R w W e`, and those flags of `s`); the other one accepts more.
Of an `awk` program the strings and patterns are removed first; the rest may contain nothing that writes, and each `>`
must be a comparison.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_agent.permissions.shell.syntax import MARKS, PIPE, UNKNOWN, SimpleCommand

from .argv import Arguments, exact_arguments, parse_arguments
from .catalogue import facts_of
from .invocation import Reads

_BLANKS = re.compile(r"[ \t]*")
_BETWEEN = re.compile(r"(?:[ \t\n;]|#[^\n]*)*")
_NUMBER = re.compile(r"\d+(?:~\d+)?|\$")
_RANGE_END = re.compile(r"[+~]\d+")
_PLAIN = re.compile(r"[dDgGhHnNpPxzF=]|[qQl][ \t]*\d*")
_LABELLED = re.compile(r":[ \t]*[\w-]+|[btT][ \t]*[\w-]*")
_TEXT = re.compile(r"[aic][ \t]*\\?[ \t]*[^\s\\][^\n\\]*(?=\n|\Z)")
_ANY_TEXT = re.compile(r"[aic](?:[^\\\n]|\\.)*", re.DOTALL)
_FILE = re.compile(r"([rRwW])[ \t]*([^\n]+)")
_COMMAND = re.compile(r"e[^\n]*")
_MATCH_FLAGS = re.compile(r"[IM]*")
_FLAGS = re.compile(r"[gpiImM0-9]*")
_ANY_FLAGS = re.compile(r"[gpiImMe0-9]*")
_DELIMITERS = frozenset("/|,#:@!%_+=~;")
"""Separators between the parts of `s` and `y` that every sed allows."""
_END = re.compile(r"[ \t]*(?=[;\n}#]|\Z)")
_STREAMS = frozenset(("/dev/stdin", "/dev/stdout", "/dev/stderr"))


@dataclass(frozen=True, slots=True)
class SedScript:
    """Effects of a script."""

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    runs: bool = False
    """True if it runs a command, or may do anything."""


def sed_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the files that `sed` (with its name) reads, or None if its script may do more than print."""
    options, scripts, operands = _arguments(words)
    if not options.is_exact or not scripts:
        return None
    if not _Parser("\n".join(scripts), is_strict=True).run():
        return None
    return Reads(tuple(operand for operand in operands if operand not in ("-", PIPE)))


def sed_effects(words: Sequence[str]) -> SedScript:
    """Return the effects of the scripts of `sed` (with its name)."""
    script = "\n".join(_arguments(words)[1])
    # Some versions of sed treat a delimiter inside brackets as text.
    parsers = [_Parser(script, reads_brackets=reads_brackets) for reads_brackets in (False, True)]
    parsed = [parser for parser in parsers if parser.run()]
    return SedScript(
        tuple(dict.fromkeys(file for parser in parsed for file in parser.read)),
        tuple(dict.fromkeys(file for parser in parsed for file in parser.written)),
        not parsed or any(parser.runs for parser in parsed),
    )


def _arguments(words: Sequence[str]) -> tuple[Arguments, list[str], list[str]]:
    """Return the parsed words, the scripts and the files."""
    facts = facts_of("sed")
    options = parse_arguments(facts, words[1:]) if facts else Arguments()
    scripts = [*options.given.get("-e", ()), *options.given.get("--expression", ())]
    if scripts or options.has("-f", "--file"):
        return options, scripts, options.operands
    return options, options.operands[:1], options.operands[1:]


class _Parser:
    """One pass over a script."""

    def __init__(self, script: str, *, is_strict: bool = False, reads_brackets: bool = False) -> None:
        self._script = script
        self._is_strict = is_strict
        self._reads_brackets = reads_brackets
        self.read: list[str] = []
        self.written: list[str] = []
        self.runs = False

    def run(self) -> bool:
        """Parse the script; False if a part of it is not known."""
        script = self._script
        at = depth = 0
        while (at := self._past(_BETWEEN, at)) < len(script):
            if script[at] == "}":
                depth -= 1
                end = at + 1
            else:
                start = self._past_addresses(at)
                if start is not None and script[start : start + 1] == "{":
                    depth += 1
                    at = start + 1
                    continue
                end = self._past_command(start) if start is not None else None
            if end is None or depth < 0 or not _END.match(script, end):
                return False
            at = end
        return depth == 0

    def _past(self, pattern: re.Pattern[str], at: int) -> int:
        match = pattern.match(self._script, at)
        return match.end() if match else at

    def _past_addresses(self, at: int) -> int | None:
        """Return the offset of the command after `first,last!`, or None if it is not certain."""
        script = self._script
        end = self._past_address(at)
        if end is None:
            return None
        comma = self._past(_BLANKS, end)
        if end > at and script[comma : comma + 1] == ",":
            start = self._past(_BLANKS, comma + 1)
            end = self._past(_RANGE_END, start)
            end = end if end > start else self._past_address(start)
            if end is None or end == start:
                return None
        at = self._past(_BLANKS, end)
        while script[at : at + 1] == "!":
            at = self._past(_BLANKS, at + 1)
        return at

    def _past_address(self, at: int) -> int | None:
        if self._script[at : at + 1] == "\\" and not self._is_strict:
            at += 1
        elif self._script[at : at + 1] != "/":
            return self._past(_NUMBER, at)
        end = self._past_delimited(at, self._script[at : at + 1])
        return self._past(_MATCH_FLAGS, end) if end is not None else None

    def _past_command(self, at: int) -> int | None:
        letter, mark = self._script[at : at + 1], self._script[at + 1 : at + 2]
        if letter in ("s", "y") and (mark in _DELIMITERS or not self._is_strict):
            middle = self._past_delimited(at + 1, mark)
            # Brackets mean nothing in a replacement.
            end = self._past_delimited(middle - 1, mark, has_brackets=False) if middle is not None else None
            return end if end is None or letter == "y" else self._past_flags(end)
        for pattern in (_PLAIN, _LABELLED, _TEXT if self._is_strict else _ANY_TEXT):
            if match := pattern.match(self._script, at):
                return match.end()
        if self._is_strict:
            return None
        if match := _COMMAND.match(self._script, at):
            self.runs = True
            return match.end()
        return self._past_file(at)

    def _past_flags(self, at: int) -> int | None:
        if self._is_strict:
            return self._past(_FLAGS, at)
        end = self._past(_ANY_FLAGS, at)
        self.runs = self.runs or "e" in self._script[at:end]
        return self._past_file(end) if self._script[end : end + 1] == "w" else end

    def _past_file(self, at: int) -> int | None:
        """Return the offset after a command with a file, whose name ends with the line."""
        match = _FILE.match(self._script, at)
        if match is None:
            return None
        letter, file = match.groups()
        if file not in _STREAMS:
            (self.read if letter in "rR" else self.written).append(file)
        return match.end()

    def _past_delimited(self, at: int, mark: str, *, has_brackets: bool = True) -> int | None:
        """Return the offset after the text between two delimiters, the first at `at`, or None if it is ambiguous."""
        script = self._script
        start = at = at + 1
        while mark and at < len(script) and script[at] != mark:
            if self._is_strict and (script[at] == "\n" or script[at : at + 2] == "\\\n"):
                return None
            if script[at] == "[" and self._reads_brackets and has_brackets:
                closing = script.find("]", at + (3 if script[at + 1 : at + 2] == "^" else 2))
                at = closing if closing > 0 else at
            at += 2 if script[at] == "\\" else 1
        if not mark or at >= len(script):
            return None
        opened = script.rfind("[", start, at)
        is_ambiguous = self._is_strict and opened >= 0 and script.find("]", opened, at) < 0
        return None if is_ambiguous else at + 1


# --- awk --------------------------------------------------------------------------------------------------------------

_WORDS = re.compile(
    r"\b(?:system|getline|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|include|load|namespace|exec)\b"
)
_PRINT = re.compile(r"\bprintf?\b")
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_REGEX = re.compile(r"/((?:[^/\\\n]|\\[^\n])*)/")
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
_AT_END = r"[ \t]*(?:[;})\n]|\Z)"
_INTO_FILE = re.compile(rf'>>?[ \t]*"(\d+)"{_AT_END}')
_SYSTEM = re.compile(r'system[ \t]*\([ \t]*"(\d+)"[ \t]*\)')
_INTO = re.compile(rf'\|&?[ \t]*"(\d+)"{_AT_END}')
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
    files = [_string(_INTO_FILE.match(code, at), texts) for at in _written(code)]
    runs = [_string(_SYSTEM.match(code, one.start()), texts) for one in re.finditer(r"\bsystem\b", code)]
    out_of = {one.end(): one for one in _OUT_OF.finditer(code)}
    runs += [
        _string(out_of.get(one.end()) if one.group(1) else _INTO.match(code, one.start()), texts)
        for one in _PIPE.finditer(code)
    ]
    is_open = UNKNOWN in runs or "@" in code
    return AwkOutputs(tuple(files), tuple(text for text in runs if text != UNKNOWN), is_open)


def _string(found: re.Match[str] | None, texts: list[str]) -> str:
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
            found = _STRING.match(program, at)
        elif letter == "/" and _BEFORE_PATTERN.search(code):
            found = _REGEX.match(program, at)
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
