"""Commands with a little language in their words: `sed`, `awk`, `jq`, `printf`; what of it only prints."""

import re
from collections.abc import Sequence

from .read_only_options import Use, is_known, sort_options
from .read_only_table import parse_entry
from .shell_syntax import PIPE

_SED = parse_entry("TEXT: -nErusz -e: --quiet --silent --regexp-extended --separate --null-data --expression: --posix")
_TEXT = {delimiter: rf"(?:[^{delimiter}\\\n]|\\[^\n])*" for delimiter in "/|,#"}
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_TEXT['/']}/I?)"
_ADDRESSES = rf"(?:{_ADDRESS}(?:,\s*(?:{_ADDRESS}|[+~]\d+))?)?\s*!?\s*"
_REPLACE = "|".join(rf"s\{mark}{text}\{mark}{text}\{mark}[gpiI0-9]*" for mark, text in _TEXT.items())
_SED_COMMAND = rf"\s*{_ADDRESSES}(?:[pdq=]|{_REPLACE})[ \t]*"
_SED_SCRIPT = re.compile(rf"{_SED_COMMAND}(?:[;\n]{_SED_COMMAND})*;?\s*\Z")

_AWK = parse_entry("TEXT: -F: -v:")
_AWK_MARKS = frozenset("|<>@`")
_AWK_PATTERN = re.compile(r"[\w\s$.,()&|!=<>+*%~-]*")
_AWK_WORDS = re.compile(
    r"\b(?:system|getline|close|fflush|ARGV|ARGC|ENVIRON|PROCINFO|SYMTAB|FUNCTAB|include|load|exec)\b"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PRINTF = re.compile(r"(?:[^%]|%%|%[-#0 +']*[\d*]*(?:\.[\d*]*)?(?:\([^)]*\)T|[sbqdiouxXcfeEgG]))*\Z", re.DOTALL)
_JQ_WORDS = re.compile(r"\b(?:import|include|env|ENV|modulemeta|get_search_list)\b")


def sed_use(words: Sequence[str]) -> Use | None:
    """What `sed` reads with scripts that print, delete, stop or replace, and nothing else."""
    options = sort_options(_SED, words[1:])
    if options is None:
        return None
    scripts = [*options.given.get("-e", ()), *options.given.get("--expression", ())]
    operands = options.operands
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    if not scripts or not all(_SED_SCRIPT.match(script) for script in scripts):
        return None
    return Use(tuple(operand for operand in operands if operand not in ("-", PIPE)))


def awk_use(words: Sequence[str]) -> Use | None:
    """What `awk` reads with a program that can neither start a program nor open a file by itself."""
    options = sort_options(_AWK, words[1:])
    if options is None or not options.operands:
        return None
    program, *operands = options.operands
    # Before the first brace there is only a pattern, where `>` compares and cannot write.
    pattern = _AWK_PATTERN.match(program)
    first = pattern.group() if pattern else ""
    actions = program if "print" in first else program[len(first) :]
    if not _AWK_MARKS.isdisjoint(actions) or _AWK_WORDS.search(program):
        return None
    return Use(tuple(word for word in operands if word not in ("-", PIPE) and not _ASSIGNMENT.match(word)))


def printf_use(words: Sequence[str]) -> Use | None:
    """`printf FORMAT …`; `-v` and `%n` set variables, and a subscript of such a variable can run commands."""
    rest = words[2:] if len(words) > 1 and words[1] == "--" else words[1:]
    if not rest or not is_known(rest[0]) or rest[0].startswith("-"):
        return None
    return Use() if _PRINTF.match(rest[0]) else None


def is_plain_jq(program: str) -> bool:
    """Whether a `jq` program reads no modules and no environment."""
    return not _JQ_WORDS.search(program)
