"""Scripts of `sed` and `awk`: those that only print, and the files and programs that the others use.

`sed` versions disagree on one point: some treat a delimiter inside brackets as text. A script only prints if it does so
in both readings; an unknown part may do anything. Of an `awk` program the strings and patterns are removed first; the
rest may contain nothing that writes, and each `>` must be a comparison. If it runs a command that is not literal, any
of its strings may be the command.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tui_agent.permissions.shell.syntax import MARKS, PIPE, UNKNOWN, SimpleCommand

from .argv import Arguments, arguments_of, exact_arguments, is_known, parse_arguments
from .catalogue import CommandFacts, facts_of
from .invocation import Reads

_BETWEEN = re.compile(r"(?:[ \t\n;]|#[^\n]*)*")
_STREAMS = frozenset(("/dev/stdin", "/dev/stdout", "/dev/stderr"))


@dataclass(frozen=True, slots=True)
class SedScript:
    """Effects of a script."""

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    runs: bool = False
    """True if it runs a command, or may do anything."""


def _sed_grammar(*, reads_brackets: bool) -> re.Pattern[str]:
    """Return the pattern of a command with its addresses, of a `{`, or of a `}`."""
    mark = r"[^\\\s\[]" if reads_brackets else r"[^\\\s]"

    def until(end: str, *, is_pattern: bool = True) -> str:
        # No text fits two of the alternatives, so that there is one way to match.
        if is_pattern and reads_brackets:
            return rf"(?:\[(?:\^.|[^^])[^\]\n]*\]|\\.|(?!{end})[^\\\n\[])*{end}"
        return rf"(?:\\.|(?!{end})[^\\\n])*{end}"

    def address(name: str) -> str:
        return rf"(?:\d+(?:~\d+)?|\$|(?:/{until('/')}|\\(?P<{name}>{mark}){until(f'(?P={name})')})[IM]*)"

    blanks = r"[ \t]*"
    commands = (
        rf"s(?P<s>{mark}){until('(?P=s)')}{until('(?P=s)', is_pattern=False)}(?P<flags>[gpiImMe0-9]*)"
        rf"(?:w{blanks}(?P<out>[^ \t\n][^\n]*))?",
        rf"y(?P<y>{mark}){until('(?P=y)')}{until('(?P=y)', is_pattern=False)}",
        rf"[dDgGhHnNpPxzF=]|[qQl]{blanks}\d*",
        rf":{blanks}[\w-]+|[btT]{blanks}[\w-]*",
        r"[aic](?:[^\\\n]|\\.)+(?=\n|\Z)",
        r"(?P<runs>e)[^\n]*",
        rf"(?P<kind>[rRwW]){blanks}(?P<file>[^ \t\n][^\n]*)",
    )
    between = rf"{blanks},{blanks}"
    addresses = rf"(?:{address('first')}(?:{between}(?:[+~]\d+|{address('last')}))?)?{blanks}(?:!{blanks})*"
    command = rf"{addresses}(?:(?P<opens>{{)|(?:{'|'.join(commands)}){blanks}(?=[;\n}}#]|\Z))"
    return re.compile(rf"{command}|(?P<closes>}}){blanks}(?=[;\n}}#]|\Z)", re.DOTALL)


_SED_GRAMMARS = (_sed_grammar(reads_brackets=False), _sed_grammar(reads_brackets=True))


def sed_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the files that `sed` (with its name) reads, or None if its script may do more than print."""
    options, scripts, operands = _arguments(words)
    if not options.is_exact or not _only_prints(scripts):
        return None
    return Reads(tuple(operand for operand in operands if operand not in ("-", PIPE)))


def edited_files(words: Sequence[str]) -> list[str] | None:
    """Return the files that `sed -i` (with its name) edits without a copy of them, or None if it may do more."""
    options, scripts, operands = _arguments(words)
    copies = {*options.given.get("-i", ("",)), *options.given.get("--in-place", ("",))} - {""}
    # Some versions take an empty word for the ending of a copy.
    is_certain = all(map(is_known, words)) and {"", "--"}.isdisjoint(words)
    is_edit = is_certain and options.has("-i", "--in-place") and not copies and _only_prints(scripts)
    return operands if is_edit and operands else None


def _only_prints(scripts: Sequence[str]) -> bool:
    # Versions of sed also disagree about text that continues on the next line.
    is_joined = "\\\n" in "\n".join(scripts)
    return bool(scripts) and not is_joined and all(reading == SedScript() for reading in _readings(scripts))


def sed_effects(words: Sequence[str]) -> SedScript:
    """Return the effects of the scripts of `sed` (with its name)."""
    known = [reading for reading in _readings(_arguments(words)[1]) if reading is not None]
    return SedScript(
        tuple(dict.fromkeys(file for one in known for file in one.read)),
        tuple(dict.fromkeys(file for one in known for file in one.written)),
        not known or any(one.runs for one in known),
    )


def _readings(scripts: Sequence[str]) -> list[SedScript | None]:
    return [_parse_sed("\n".join(scripts), grammar) for grammar in _SED_GRAMMARS]


def _arguments(words: Sequence[str]) -> tuple[Arguments, list[str], list[str]]:
    """Return the parsed words, the scripts and the files."""
    options = arguments_of(("sed", *words[1:]))
    scripts = [*options.given.get("-e", ()), *options.given.get("--expression", ())]
    if scripts or options.has("-f", "--file"):
        return options, scripts, options.operands
    return options, options.operands[:1], options.operands[1:]


def _parse_sed(script: str, grammar: re.Pattern[str]) -> SedScript | None:
    """Return the effects of a script, or None if a part of it is not known."""
    read, written, runs = list[str](), list[str](), False
    at = depth = 0
    while (at := _past(_BETWEEN, script, at)) < len(script):
        found = grammar.match(script, at)
        if found is None or (found["closes"] and depth == 0):
            return None
        at, depth = found.end(), depth + bool(found["opens"]) - bool(found["closes"])
        runs = runs or found["runs"] is not None or "e" in (found["flags"] or "")
        for file in (found["file"], found["out"]):
            if file is not None and file not in _STREAMS:
                (read if found["kind"] in ("r", "R") else written).append(file)
    return None if depth else SedScript(tuple(read), tuple(written), runs)


def _past(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


# --- awk --------------------------------------------------------------------------------------------------------------

_MORE = re.compile(
    r"[@`#\\]|\b(?:system|getline|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|include|load|namespace|exec)\b"
)
"""Everything in a program that may do more than print, beside its outputs."""
_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_REGEX = re.compile(r"/((?:[^/\\\n]|\\[^\n])*)/")
_UNCLOSED = re.compile(r"\[\^?\]?[^\]]*\Z")
_BEFORE_PATTERN = re.compile(
    r"(?:[(,{};!~&|=\n]|\b(?:printf?|return|in|else|do|exit|case|delete))[ \t\n]*\Z|\A[ \t\n]*\Z"
)
_DIVIDED = re.compile(r"(?<!\blength)[\w\]][ \t]*\Z")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_RUNS = re.compile(r"@|(?<!\|)\|(?!\|)|\bsystem\b")
"""Everything with which a program may run another one, or call a function by a computed name."""
_COMMAND = re.compile(r'\|&?[ \t]*"(\d+)"[ \t]*(?=[;})\n]|\Z)|\bsystem[ \t]*\([ \t]*"(\d+)"[ \t]*\)')
"""A literal command. The groups are the number of its string."""
_IN_BRACKETS = re.compile(r"\((?:(?!\bprint)[^()])*\)")
_INTO_FILE = re.compile(r'\bprintf?\b[^{}>]*>>?(?:[ \t]*"(\d+)"[ \t]*(?=[;})\n]|\Z))?')
"""A `>` that may write: it follows `print` in the same block. The group is the number of the string behind it."""
_QUOTED = re.compile(r"\\([\"/])")


@dataclass(frozen=True, slots=True)
class AwkOutputs:
    """Files that a program writes and commands that it runs."""

    files: tuple[str, ...] = ()
    """Files that it writes; `UNKNOWN` if only its run determines one."""
    scripts: tuple[str, ...] = ()
    """Strings of it that a shell may run."""
    is_open: bool = False
    """True if only its run determines some commands."""


def awk_outputs(words: Sequence[str]) -> AwkOutputs:
    """Return what the program of an `awk` command (with its name) writes and runs; nothing if it is in a file."""
    facts = facts_of("awk") or CommandFacts("awk")
    options = parse_arguments(facts, words[1:])
    if options.has("-f", "--file"):
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
        may_write = program in MARKS or ">" in program or _RUNS.search(program)
        return AwkOutputs((UNKNOWN,), is_open=True) if may_write else AwkOutputs()
    code, texts = found
    texts = [UNKNOWN if "\\" in text else text for text in (_QUOTED.sub(r"\1", text) for text in texts)]
    scripts = [texts[int(number)] for found in _COMMAND.findall(code) for number in found if number]
    is_open = UNKNOWN in scripts or _RUNS.search(_COMMAND.sub(" ", code)) is not None
    # A `>` in brackets compares. Those that are left have a `print` in them or no end, and then any `>` may write.
    while (shorter := _IN_BRACKETS.sub(" 0 ", code)) != code:
        code = shorter
    files = [texts[int(one[1])] if one[1] else UNKNOWN for one in _INTO_FILE.finditer(code)]
    files += [UNKNOWN] if ">" in code and not {"(", ")"}.isdisjoint(code) else []
    # Any string may be the command, or a part of it.
    scripts = [text for text in (texts if is_open else scripts) if text != UNKNOWN]
    return AwkOutputs(tuple(files), tuple(scripts), is_open)


def awk_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the files that `awk` (with its name) reads, or None if its program may do more than print."""
    options = exact_arguments(facts_of("awk") or CommandFacts("awk"), words[1:])
    if options is None or not options.operands:
        return None
    program, *operands = options.operands
    found = _without_texts(program)
    if found is None or _MORE.search(found[0]) or _outputs(program) != AwkOutputs():
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
