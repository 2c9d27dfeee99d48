"""Program that finds the functions and classes in source files. The engine runs it, but never imports it.

Reading many files takes seconds of the processor; a separate process blocks nothing and can be ended. Arguments: the
number of a descriptor with the files, one a line as JSON: name, time and size as last seen. The output has a line for
each file that is new or has changed: name, time, size, and its symbols as [name, kind, first line, last line].
"""

import json
import os
import re
import resource
import stat
import sys
from collections.abc import Callable, Iterator

_SECONDS = 60
_MOST_BYTES = 512 * 1024
_MOST_SYMBOLS = 2_000
"""Symbols of one file."""
_MOST_LINES = 3_000
"""Lines of one symbol."""
_LONGEST_LINE = 400
"""Characters of a line that are looked at: the time of a pattern grows with their square."""
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NICENESS = 10

_WORDS = (
    r"(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|virtual|async|export|default"
    r"|declare|inline|data|partial|readonly|suspend|unsafe|extern|const|mutating|synchronized|native)[ \t]+)*"
)
_TYPES = r"class|interface|enum|record|object|trait|struct|protocol|namespace|module|union"
_PYTHON = r"^([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+(\w+)"
_SCRIPT = (
    rf"^([ \t]*){_WORDS}(function|class|interface|enum|type|namespace)\*?[ \t]+([\w$]+)"
    r"|^([ \t]*)(?:export[ \t]+)?(const|let|var)[ \t]+([\w$]+)[^=\n]{0,200}="
    r"[ \t]*(?:async[ \t]*)?(?:function|\([^\n]*\)[^\n]*=>|\w+[ \t]*=>)"
)
_GO = r"^()(func|type)[ \t]+(?:\([^)\n]*\)[ \t]*)?(\w+)"
_RUST = (
    r"^([ \t]*)(?:pub(?:\([^)\n]*\))?[ \t]+)?(?:(?:async|const|unsafe|extern(?:[ \t]+\"[^\"\n]*\")?)[ \t]+)*"
    r"(fn|struct|enum|trait|mod|union|type)[ \t]+(\w+)"
)
_CURLY = (
    rf"^([ \t]*){_WORDS}({_TYPES}|fun|func|def)[ \t]+(\w+)"
    r"|^([ \t]+)((?:public|private|protected|internal|static)[ \t])[^=;(){}\n]{0,200}?(\w+)[ \t]*\([^;{}\n]*\)?[^;\n]*$"
)
_C = (
    r"^()(struct|class|enum|union|namespace)[ \t]+(\w+)[^;\n]*$"
    r"|^()([A-Za-z_][\w:<>,*& \t]{0,200}?[ \t*&])((?:\w+::)*~?\w+)[ \t]*\([^;\n]*$"
)
_RUBY = r"^([ \t]*)(def|class|module)[ \t]+(?:self\.)?([\w:]+[?!]?)"
_PHP = rf"^([ \t]*){_WORDS}(function|class|interface|trait|enum)[ \t]+&?(\w+)"
_SHELL = r"^([ \t]*)(?:(function)[ \t]+([\w:-]+)|()([\w:-]+)[ \t]*\(\))"
_LUA = r"^([ \t]*)(?:local[ \t]+)?(function)[ \t]+([\w.:]+)"
_ELIXIR = r"^([ \t]*)(defmodule|defp?|defmacrop?)[ \t]+([\w.]+[?!]?)"

_BY_SUFFIX = {
    **dict.fromkeys((".py", ".pyi", ".pyx"), _PYTHON),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".vue", ".svelte"), _SCRIPT),
    ".go": _GO,
    ".rs": _RUST,
    **dict.fromkeys((".java", ".kt", ".kts", ".cs", ".scala", ".swift", ".dart", ".groovy"), _CURLY),
    **dict.fromkeys((".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".m"), _C),
    **dict.fromkeys((".rb", ".rake"), _RUBY),
    ".php": _PHP,
    **dict.fromkeys((".sh", ".bash", ".zsh"), _SHELL),
    ".lua": _LUA,
    **dict.fromkeys((".ex", ".exs"), _ELIXIR),
}
PATTERNS = {suffix: re.compile(pattern, re.MULTILINE) for suffix, pattern in _BY_SUFFIX.items()}
"""Pattern of each kind of file; in each match three groups are set: indentation, kind, name."""
_KINDS = frozenset(
    [
        "class",
        "const",
        "def",
        "defmacro",
        "defmodule",
        "defp",
        "enum",
        "fn",
        "func",
        "fun",
        "function",
        "interface",
        "let",
        "mod",
        "module",
        "namespace",
        "object",
        "protocol",
        "record",
        "struct",
        "trait",
        "type",
        "union",
        "var",
    ]
)
_NOT_NAMES = frozenset(("if", "for", "while", "switch", "return", "catch", "else", "sizeof", "defined", "do", "new"))
_CONTINUES = (")", "{", "]", "):")
_ENDS = ("}", "end")

Symbol = tuple[str, str, int, int]


def main(descriptor: int, write: Callable[[str], object]) -> int:
    """Write the symbols of the files that are new or have changed."""
    # What the user waits for comes first.
    os.nice(_NICENESS)
    # For the case that the engine is gone and cannot end this program.
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    with open(descriptor, encoding="utf-8", errors="surrogateescape") as files:
        for record in files:
            name, seen_time, seen_size = json.loads(record)
            try:
                facts = os.lstat(name)
                if not stat.S_ISREG(facts.st_mode) or (facts.st_mtime_ns, facts.st_size) == (seen_time, seen_size):
                    continue
                found = list(_symbols_of_file(name)) if facts.st_size <= _MOST_BYTES else []
            except OSError:
                continue
            write(json.dumps([name, facts.st_mtime_ns, facts.st_size, found]) + "\n")
    return 0


def _symbols_of_file(name: str) -> Iterator[Symbol]:
    descriptor = os.open(name, _FILE)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return
        content = file.read(_MOST_BYTES + 1)
    if b"\0" not in content:
        yield from symbols_of(content.decode("utf-8", "replace"), os.path.splitext(name)[1])


def symbols_of(text: str, suffix: str) -> Iterator[Symbol]:
    """Yield name, kind, first and last line of each function and class in a source text."""
    lines = [line[:_LONGEST_LINE] for line in text.split("\n")]
    text = "\n".join(lines)
    place = number = count = 0
    for match in PATTERNS[suffix].finditer(text):
        indent, kind, name = [group for group in match.groups() if group is not None][:3]
        # `if (…)` looks like the head of a function in C and Java.
        if name in _NOT_NAMES:
            continue
        number += text.count("\n", place, match.start())
        place = match.start()
        word = kind.strip()
        # In C and Java a type or a modifier precedes the name of a function.
        named = word if word in _KINDS else "function"
        yield name, named, number + 1, _last_line(lines, number, indent) + 1
        count += 1
        if count == _MOST_SYMBOLS:
            return


def _last_line(lines: list[str], first: int, indent: str) -> int:
    """Return the index of the last line of what begins at a line: the next one that is indented no deeper ends it."""
    width = len(indent.expandtabs(8))
    last = first
    for index in range(first + 1, min(len(lines), first + _MOST_LINES)):
        line = lines[index]
        bare = line.strip()
        if not bare:
            continue
        # The end of a parameter list, or a brace, may be indented like the head.
        if len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip()) > width or bare.startswith(_CONTINUES):
            last = index
            continue
        return index if bare.startswith(_ENDS) else last
    return last


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.stdout.write))
