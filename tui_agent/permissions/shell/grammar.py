"""Bash's grammar (tree-sitter) as a second reading of a command, and a rough one of what neither can read.

Our parser makes the statements. This grammar, which knows nothing about it, must find the commands at the same places;
else one of the two reads the text differently from bash, and it counts as unreadable. Rules that forbid a command still
apply to such a text, so it is split into the commands that may be in it.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, takewhile

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point, Query, QueryCursor

from .syntax import UNKNOWN, Assignment, Redirect, SimpleCommand, UnreadableError, Word, names

MAX_BYTES = 65_536
"""Maximum length of an analysed command; the policy asks about a longer one."""
MAX_STEPS = 600
"""Maximum length of a parse in the grammar's own steps: enough for a thousand ordinary commands.

An error at the end of a long text costs the square of its length, in one step that cannot be interrupted.
"""

_LANGUAGE = Language(tree_sitter_bash.language())
_COMMANDS = Query(_LANGUAGE, "[(command_name) (declaration_command) (unset_command) (test_command)] @command")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECT_BYTES = 512
"""Length up to which a parse is too short to need a budget."""
_CHUNK_BYTES = 1_024
"""Bytes passed to the grammar at once; after looking far ahead it requests them again."""
_FREE_READS, _READS_A_CHUNK = 200, 10
"""Budget of reads. Ordinary text is read at most three times; a text that needs more is given up."""

MAX_CHARACTERS = 131_072
"""Maximum number of characters of an unreadable text that are split; the rest is ignored."""
MAX_COMMANDS = 500
"""Maximum number of commands in an unreadable text."""
MAX_WORDS = 1_000
"""Maximum number of words of one of them; a redirection counts as ten."""
_TOKEN = re.compile(
    r"(?P<end>\|\||&&|\|&|;|\n|\$?\(|\)|`|(?<![<>&])&(?![>\d])|(?<!>)\|)"
    r"|(?P<redirect>\d*(?:&>>?|>>|>\||>&|<>|>|<<<|<<-?|<))"
    r"|(?P<word>(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s;|&()<>`])+)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_QUOTING = re.compile(r"\\\n|\\(.)|'([^']*)'|[\"']", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{[^}]*\}?|\w+|[@*#?$!-])")
_GRAMMAR_WORDS = names("! { } then do else elif if while until time coproc function case in fi done esac")


def check_text(text: str) -> None:
    """Raise `UnreadableError` for a text that is too long or contains control characters."""
    if len(text.encode()) > MAX_BYTES:
        raise UnreadableError(f"the command is longer than {MAX_BYTES} bytes")
    if _CONTROL.search(text):
        raise UnreadableError("the command contains control characters")


def check_commands(text: str, starts: set[int]) -> None:
    """Check that the grammar finds commands at these offsets and nowhere else.

    Raises:
        UnreadableError: it finds others or errors, or cannot parse the text in time.
    """
    root = _tree(text.encode())
    if root.has_error:
        raise UnreadableError("the command does not look like valid bash")
    ours, offset, last = set[int](), 0, 0
    for start in sorted(starts):
        offset += len(text[last:start].encode())
        last = start
        ours.add(offset)
    theirs = {node.start_byte for nodes in QueryCursor(_COMMANDS).captures(root).values() for node in nodes}
    if ours != theirs:
        raise UnreadableError("text that can be read in several ways")


def _tree(source: bytes) -> Node:
    """Parse the source within budgets of steps and reads, so that the answer is the same on every machine.

    The first error ends the parse, because error recovery is quadratic in places.
    """
    parser = Parser(_LANGUAGE)
    if len(source) <= _DIRECT_BYTES:
        return parser.parse(source).root_node
    steps = 0
    reads_left = _FREE_READS + _READS_A_CHUNK * (len(source) // _CHUNK_BYTES)

    def read(offset: int, _: Point) -> bytes:
        nonlocal reads_left
        reads_left -= 1
        return source[offset : offset + _CHUNK_BYTES] if reads_left >= 0 else b""

    def is_over(_: int, has_error: bool) -> bool:
        nonlocal steps
        steps += 1
        return has_error or steps > MAX_STEPS or reads_left < 0

    try:
        root = parser.parse(read, progress_callback=is_over).root_node
    except ValueError as error:
        raise UnreadableError("the command has an error, or is too complex to analyse") from error
    if reads_left < 0:
        raise UnreadableError("the command is too complex to analyse")
    return root


def fallback_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands that may be in an unreadable text, at most `MAX_COMMANDS`."""
    return tuple(islice(_cut(text[:MAX_CHARACTERS]), MAX_COMMANDS))


def _cut(text: str) -> Iterator[SimpleCommand]:
    words: list[str] = []
    redirects: list[Redirect] = []
    operator = ""
    for token in _TOKEN.finditer(f"{text}\n"):
        raw = token[0]
        if token["redirect"]:
            operator = raw.lstrip("0123456789")
        elif token["end"]:
            yield from _command(words, redirects)
            # Another one may begin after a brace: `coproc name { rm x`, `name() { rm x`.
            braces = [at for at, word in enumerate(words) if word == "{"]
            for start, end in pairwise((*braces, len(words))):
                yield from _command(words[start + 1 : end], [])
            words, redirects, operator = [], [], ""
        elif len(words) + 10 * len(redirects) < MAX_WORDS:
            if operator:
                redirects.append(Redirect(operator, _word(raw), operator + raw))
            elif words or raw not in _GRAMMAR_WORDS:
                words.append(raw)
            operator = ""


def _command(words: Sequence[str], redirects: Sequence[Redirect]) -> Iterator[SimpleCommand]:
    """Yield a command, if there is one."""
    written = " ".join((*words, *(redirect.text for redirect in redirects)))
    matches = list(takewhile(bool, map(_ASSIGNMENT.match, words)))
    assignments = [Assignment(one[1], _word(one.string[one.end() :]), one.string) for one in matches if one]
    if words[len(assignments) :] or redirects:
        own = tuple(map(_word, words[len(assignments) :]))
        yield SimpleCommand(written, own, tuple(assignments), tuple(redirects))


def _word(raw: str) -> Word:
    """Return a word without its quoting; variables are unknown, and braces may still expand to several words."""
    value = _VARIABLE.sub(UNKNOWN, _QUOTING.sub(lambda found: found[1] or found[2] or "", raw))
    braces = (at for at, letter in enumerate(value) if letter in "{},") if "{" in raw else ()
    return Word(value, frozenset(braces), text=raw)
