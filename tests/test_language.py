"""The language of the repository, as far as patterns can check it: docstrings, messages, comments, pages and names."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

# Reading every file of the repository takes seconds; the tests share what they read.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

SOURCES = sorted(path for room in ("tui_agent", "tests", "docs") for path in (ROOT / room).rglob("*.py"))
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
DATA = sorted([ROOT / "docs" / "requirements.toml", *(ROOT / "tests").rglob("*.txt")])

ALLOWED: dict[tuple[str, str], str] = {
    ("tests/test_language.py", "*"): "names the turns that it finds",
    ("tui_agent/permissions", "words of a command"): "a word is a term of the shell's grammar",
    ("tui_agent/permissions", "words of one command"): "the same",
    ("tui_agent/providers/demo/demo_policy.py", "go on"): "a message that the demo understands",
}
"""Reasons to allow a phrase (or, with `*`, every phrase) in a file or a folder."""

OPENINGS = re.compile(r"\W*(?:What|Whether|How|Where|When|Why|Who|Whoever|Whose)\b")
"""Openings of a docstring that is a clause instead of an imperative or a noun phrase."""

IS = r"(?:is|are|was|were|be|been|being)"

TURNS = {
    "publish, emit, report, show": rf"\b{IS} told\b(?! apart)|\btold (?:of|once|only|at|when|with|to nobody)\b",
    "name the actor: 'the program reports …'": rf"\b{IS} (?:said|asked about|heard)\b(?! to )",
    "the user, you": r"\b(?:a|the) person\b|\b[Ww]hoever\b|\bfor whom\b"
    r"|\b(?:if|when|what) one (?:can|does|leaves|quits|says|wants)\b",
    "no one, or name who does not": r"\b(?:[Nn]o|[Ss]ome|[Aa]ny)body\b",
    "continue, resume, is running": r"\b(?:go|goes|going|went|gone) on\b(?! the)",
    "is not a": rf"(?<!\b[Tt]here )(?<!\b[Ww]here )\b{IS} no "
    r"(?!longer|more|less|later|earlier|such|one|reason)[a-z]\w+",
    "no X matches": rf"\b[Tt]here {IS} no (?:\w+ ){{1,2}}(?:that|which|who)\b",
    "resume, cancel, undo, recall": r"\b(?:take|takes|took|taken|taking) (?:it |them |this |that )?back\b"
    r"|\b(?:take|takes|took|taken|taking) up (?!space|room|\d)",
    "arguments, input, output, result": r"\bwhat (?:it|they|a \w+|the \w+) (?:is|are|was|were) given\b"
    rf"|\bwhat (?:it|they) gives?\b|\b{IS} given (?:back|on|out|away)\b|\b(?:gives?|gave|giving) back\b",
    "find, receive, is in, has finished": r"\b(?:come|comes|came|coming) upon\b|\b(?:hear|hears|heard|hearing) of\b"
    r"|\b(?:stand|stands|stood|standing) (?:in|on|beside|behind|below|above|there|at|before|after|between)\b(?! for)"
    rf"|\b{IS} through(?= ?[.,;:)]|$)",
    "a path, a directory; how": r"\bthe way of\b|\ba place for (?:events|results)\b",
    "arguments, argv": r"\bwords of (?:a|the|its|their|this|that|each|one) (?:command|call|line|program)s?\b",
    "keep, guarantee": r"\b(?:invariant|promise|contract|propert(?:y|ie)|rule)s? (?:hold|holds|held)\b"
    r"|\b(?:hold|holds|held) (?:an|the|this|that|its|every|each|all) (?:invariant|promise|contract|rule)s?\b",
    "poll": rf"\b(?:look|looks|looked|looking)(?: \w+)? for steering\b|\b{IS} looked for\b",
    "for, the": r"\bthat which\b",
}
"""Turns that read as translated, by the words to use instead."""

CODES = {
    "a finding of a review": r"(?<![\w#.-])[CP]\d{1,3}\b(?!-)",
    "a section of a page elsewhere": r"§ ?\d",
    "a seed": r"\b[Ss]eeds? \d{3}\b",
}
"""References to documents that are not in the repository; the text states the reason instead."""

NOUNS = {
    "binding": "the link between two things",
    "folding": "collapsed text, as in editors",
    "hardening": "as in process hardening",
    "keeping": "of the changes of a layer",
    "listing": "the output of a directory listing",
    "paging": "division into pages",
    "recording": "a file with the events of a session",
    "routing": "as in input routing",
    "sorting": "as in sorting algorithm",
    "steering": "a word of the glossary",
    "streaming": "as in a streaming response",
    "typing": "input from the keyboard",
    "extending": "a test is named after its page",
}
"""Words on -ing that are nouns of the field, with their meaning in a module's name."""

PARTICLES = frozenset({"back", "down", "first", "in", "off", "on", "out", "over", "up"})

PRIVATE_WORDS = frozenset(
    {"aftermath", "brakes", "coming", "consent", "crew", "desk", "doors", "doubts", "hearsay", "intake", "lanes"}
    | {"oddity", "reception", "standing", "surroundings", "teller", "waits"}
)
"""Words in the names of modules for which the field has a term."""

TEST_NAME = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)

STRING_OR_COMMENT = re.compile(r'''("""|\'\'\'|"|\')(?:\\.|(?!\1).)*?\1|(?P<comment>\#[^\n]*)''', re.DOTALL)
"""A string, in which `#` begins no comment, or a comment. Far faster than splitting the source into tokens."""


class Prose(NamedTuple):
    """A piece of text that someone reads, with the line it begins on."""

    line: int
    kind: str
    """`docstring`, `string`, `comment` or `page`."""
    text: str


def name_of(path: Path) -> str:
    """Return the path as the repository names it."""
    return path.relative_to(ROOT).as_posix()


def docstrings_of(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    """Yield every docstring: of modules, classes, functions, and of fields, below their assignment."""
    for node in nodes:
        for part in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                yield part.value


def strings_of(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield every text of several words; a value inside an f-string, which comes before its parts, is an `X`."""
    inside: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield node.lineno, "".join(str(p.value) if isinstance(p, ast.Constant) else "X" for p in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Yield every comment; lines that follow each other are one text."""
    first, last, text, line, end = 0, -1, "", 1, 0
    for match in STRING_OR_COMMENT.finditer(source):
        if match["comment"] is None:
            continue
        line += source.count("\n", end, match.start())
        end = match.start()
        words = match["comment"].lstrip("#: ")
        if line == last + 1:
            text = f"{text} {words}"
        else:
            if text:
                yield first, text
            first, text = line, words
        last = line
    if text:
        yield first, text


@cache
def prose_of(path: Path) -> tuple[Prose, ...]:
    """Return everything in a file that is meant to be read."""
    source = path.read_text("utf-8")
    if path.suffix == ".md":
        return tuple(prose_of_page(source))
    if path.suffix != ".py":
        return tuple(Prose(number, "page", line) for number, line in enumerate(source.splitlines(), 1))
    nodes = list(ast.walk(ast.parse(source)))
    docstrings = list(docstrings_of(nodes))
    known = {(node.lineno, node.value) for node in docstrings}
    return (
        *(Prose(node.lineno, "docstring", str(node.value)) for node in docstrings),
        *(Prose(line, "string", text) for line, text in strings_of(nodes) if (line, text) not in known and " " in text),
        *(Prose(line, "comment", text) for line, text in comments_of(source)),
    )


def prose_of_page(source: str) -> Iterator[Prose]:
    """Yield the paragraphs of a page, without code."""
    text = re.sub(r"^```.*?^```$", lambda code: "\n" * code[0].count("\n"), source, flags=re.MULTILINE | re.DOTALL)
    line = 1
    for part in re.split(r"(\n\n|\n(?=[-|#]))", text):
        if part.strip():
            yield Prose(line, "page", part)
        line += part.count("\n")


def without_code(text: str) -> str:
    """Return a text without what stands in backticks, in one line."""
    return " ".join(re.sub(r"`[^`]*`", "`…`", text).split())


def is_allowed(path: Path, phrase: str) -> bool:
    """Return True if the file or a folder that contains it may use the phrase."""
    places = [name_of(place) for place in (path, *path.parents) if place.is_relative_to(ROOT)]
    return any((place, text) in ALLOWED for place in places for text in (phrase, "*"))


def found_by(patterns: dict[str, str], path: Path, kinds: set[str], *, code: bool = False) -> list[str]:
    """Return a line for each match: where, the phrase with its surroundings, and the remedy."""
    found: list[str] = []
    for line, kind, text in prose_of(path):
        words = " ".join(text.split()) if code else without_code(text)
        for remedy, pattern in patterns.items():
            for match in re.finditer(pattern, words) if kind in kinds else ():
                around = words[max(0, match.start() - 30) : match.end() + 20]
                if not is_allowed(path, match[0]):
                    found.append(f"{name_of(path)}:{line}: '{match[0]}' in {kind} '…{around}…' → {remedy}")
    return found


def failure(found: list[str]) -> str:
    return "\n" + "\n".join(found)


def kinds_of(path: Path) -> set[str]:
    """Return the kinds of text to check; strings of tests are data, which may say anything."""
    return {"docstring", "comment", "page"} | ({"string"} if not path.is_relative_to(ROOT / "tests") else set())


def test_a_docstring_opens_with_an_imperative_or_a_noun() -> None:
    found = [
        f"{name_of(path)}:{line}: '{text[:40]} …' opens a docstring; begin with a verb or a noun"
        for path in SOURCES
        for line, kind, text in prose_of(path)
        if kind == "docstring" and OPENINGS.match(text) and not is_allowed(path, text.split(maxsplit=1)[0])
    ]

    assert found == [], failure(found)


def test_no_turn_reads_as_translated() -> None:
    pages = [*SOURCES, *PAGES, ROOT / "docs" / "requirements.toml"]
    found = [line for path in pages for line in found_by(TURNS, path, kinds_of(path))]

    assert found == [], failure(found)


def defined() -> dict[str, set[str]]:
    """Return the numbers that a text may name, by the pattern that finds them."""
    wanted = tomllib.loads((ROOT / "docs" / "requirements.toml").read_text("utf-8"))
    safety = (ROOT / "docs" / "safety.md").read_text("utf-8")
    return {
        r"\bS[0-4]-\d+\b": {f"{name}-{number}" for name, sentences in wanted.items() for number in sentences},
        # The pages of decisions have names, not numbers.
        r"\b[Dd]ecision (\d+)\b": set(),
        r"\bpromise (\d+)\b": set(re.findall(r"^\| (\d+) \|", safety, re.MULTILINE)),
    }


def test_every_code_is_defined_in_the_repository() -> None:
    kinds = {"docstring", "comment", "page", "string"}
    pages = [*SOURCES, *PAGES, *DATA]
    found = [line for path in pages for line in found_by(CODES, path, kinds, code=True)]
    found += [
        f"{name_of(path)}:{line}: '{number}' is not defined"
        for pattern, known in defined().items()
        for path in pages
        for line, _, text in prose_of(path)
        for number in re.findall(pattern, text)
        if number not in known and not is_allowed(path, number)
    ]

    assert found == [], failure(found)


def test_names_of_modules_and_tests_use_the_terms_of_the_field() -> None:
    found = [line for path in SOURCES for line in found_in_names(path)]

    assert found == [], failure(found)


def found_in_names(path: Path) -> list[str]:
    """Return a line for each name of a module or a test that has a better term."""
    words = path.stem.removeprefix("test_").split("_")
    head = words[0] if words[-1] in PARTICLES else words[-1]
    found = [f"'{path.stem}': '{word}' is a private word; use the field's term" for word in PRIVATE_WORDS & set(words)]
    if head.endswith("ing") and head not in NOUNS and not head.endswith("string"):
        found.append(f"'{path.stem}': '{head}' is an activity; name the thing")
    found += [
        f"'{name}': '{match[0]}' → {remedy}"
        for name in (TEST_NAME.findall(path.read_text("utf-8")) if path.name.startswith("test_") else ())
        for remedy, pattern in TURNS.items()
        for match in re.finditer(pattern, name.replace("_", " "))
        if not is_allowed(path, name)
    ]
    return [f"{name_of(path)}: {line}" for line in found]


def test_the_allow_list_names_files_and_folders_that_exist() -> None:
    assert [name for name, _ in ALLOWED if not (ROOT / name).exists()] == []
