"""Rough split of unreadable text into the commands that may be in it, for rules that forbid some of them."""

import re
from collections.abc import Iterator
from itertools import islice

from .syntax import UNKNOWN, Assignment, Redirect, SimpleCommand, Word, names

MAX_CHARACTERS = 131_072
"""Maximum number of characters of a text that are split; the rest is ignored."""
MAX_COMMANDS = 500
"""Maximum number of commands."""
MAX_WORDS = 1_000
"""Maximum number of words of one command; a tenth for redirections."""

_TOKEN = re.compile(
    r"(?P<end>\|\||&&|\|&|;|\n|\$?\(|\)|`|(?<![<>&])&(?![>\d])|(?<!>)\|)|(?P<redirect>\d*(?:&>>?|>>|>\||>&|<>|>|<<<|<<-?|<))"
    r"|(?P<word>(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s;|&()<>`])+)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_QUOTING = re.compile(r"\\\n|\\(.)|'([^']*)'|[\"']", re.DOTALL)
_GRAMMAR_WORDS = names("! { } then do else elif if while until time coproc function case in fi done esac")


def fallback_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands that may be in `text`, at most `MAX_COMMANDS`."""
    return tuple(islice(_cut(text[:MAX_CHARACTERS]), MAX_COMMANDS))


def _cut(text: str) -> Iterator[SimpleCommand]:
    words: list[str] = []
    redirects: list[Redirect] = []
    pending = ""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "word":
            raw = match.group()
            if pending:
                if len(redirects) < MAX_WORDS // 10:
                    redirects.append(Redirect(pending, Word(_unquoted(raw)), pending + raw))
                pending = ""
            elif len(words) < MAX_WORDS and (words or raw not in _GRAMMAR_WORDS):
                words.append(raw)
        elif match.lastgroup == "redirect":
            pending = match.group().lstrip("0123456789")
        elif words or redirects or pending:
            yield from _commands(words, redirects)
            words, redirects, pending = [], [], ""
    yield from _commands(words, redirects)


def _commands(words: list[str], redirects: list[Redirect]) -> Iterator[SimpleCommand]:
    """Yield one command, and those that may begin after a brace in it: `coproc name { rm x`, `name() { rm x`."""
    yield from _command(words, redirects)
    start = 0
    for end in (*(at for at, word in enumerate(words) if word == "{"), len(words)):
        if 0 < start < end:
            yield from _command(words[start:end], [])
        start = end + 1


def _command(words: list[str], redirects: list[Redirect]) -> Iterator[SimpleCommand]:
    assignments: list[Assignment] = []
    while words and (match := _ASSIGNMENT.match(words[0])):
        raw, words = words[0], words[1:]
        assignments.append(Assignment(match.group(1), Word(_unquoted(raw[match.end() :])), raw))
    if words or redirects:
        written = " ".join((*words, *(redirect.text for redirect in redirects)))
        yield SimpleCommand(written, tuple(_word(raw) for raw in words), tuple(assignments), tuple(redirects))


def _word(raw: str) -> Word:
    """Return one word, whose braces may still expand to several."""
    value = _unquoted(raw)
    braces = frozenset(at for at, letter in enumerate(value) if letter in "{},") if "{" in raw else frozenset[int]()
    return Word(value, braces, text=raw)


def _unquoted(raw: str) -> str:
    """Return the word without its quoting; variables are marked as unknown."""
    plain = _QUOTING.sub(lambda match: match.group(1) or match.group(2) or "", raw)
    return re.sub(r"\$(?:\{[^}]*\}?|\w+|[@*#?$!-])", UNKNOWN, plain)
