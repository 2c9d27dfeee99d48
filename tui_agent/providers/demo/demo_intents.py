"""Conversion of plain English into goals by a few sentence forms, which are tried in order."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .demo_goals import compare_files, create_file, list_files, read_files, replace_text, run_command, search_text
from .demo_turn import DemoTurn
from .guided_tour import DemoWorkspace, start_tour

HELP = """I'm a scripted demo, not a language model. I understand a few plain sentences and use the real tools:

- **`fix the failing test`** – the guided tour: read, test, approve an edit, test again
- `read FILE` · `show A and B` · `list files in DIR` · `find TEXT in DIR`
- `compare A and B` – two reads at the same time
- `run COMMAND` – shows the output while the command runs
- `replace A with B in FILE` · `create FILE with TEXT` – asks you first

While I work, you can type `stop`, `skip`, `instead …` or `also …`.

To use a real model, set `ANTHROPIC_API_KEY` and start `tui-agent` without `--demo`."""

LONGEST = 1_000
"""Most characters of a sentence; only commands and the texts of files may be longer."""

_QUOTES = {"`": "`", '"': '"', "'": "'", "“": "”", "«": "»"}
_SEVERAL = "paths"
"""Part of a sentence that may contain several quoted names."""
_SENTENCE_END = re.compile(r"([`\"”»'])[.?!]+$")
_WORD = r"`[^`]+`|\"[^\"]+\"|“[^”]+”|«[^»]+»|'[^']+'|\S+"
_TEXT = r"`[^`]+`|\"[^\"]+\"|“[^”]+”|«[^»]+»|'[^']+'|.+?"
_POLITE = re.compile(
    r"^(?:(?:please|now|ok(?:ay)?|then|and|let'?s|let us|(?:can|could|would|will) you|i want you to)\b[\s,]*)+", re.I
)
_THANKS = re.compile(r"[\s,]+(?:please|thanks|thank you)[.!]*$", re.IGNORECASE)
_THEN = re.compile(r"[,;.]?\s+(?:and\s+)?(?:then|after that)\s+", re.I)


def understand(words: str, demo_workspace: DemoWorkspace) -> list[DemoTurn] | None:
    """Return the first turn of each goal in a prompt; None if the prompt is not understood.

    `then` separates several goals; a command or the text of a file extends to the end of the prompt.
    """
    rest = words.strip()
    if len(rest) <= LONGEST:
        rest = _THANKS.sub("", rest)
    turns: list[DemoTurn] = []
    while rest:
        rest = _POLITE.sub("", rest)
        whole = next((turn for form in _GREEDY if (turn := form(rest, demo_workspace)) is not None), None)
        if whole is not None:
            return [*turns, whole]
        if len(rest) > LONGEST:
            return None
        part, *others = _THEN.split(rest, maxsplit=1)
        turn = next((turn for form in _FORMS if (turn := form(part.strip(), demo_workspace)) is not None), None)
        if turn is None:
            return None
        turns.append(turn)
        rest = others[0] if others else ""
    return turns or None


_Reader: TypeAlias = Callable[[dict[str, str], DemoWorkspace], DemoTurn | None]
"""Function that returns a goal for the named parts of a sentence."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A sentence form."""

    pattern: re.Pattern[str]
    reader: _Reader

    def __call__(self, words: str, demo_workspace: DemoWorkspace) -> DemoTurn | None:
        match = self.pattern.fullmatch(words)
        if match is None:
            return None
        found = {name: part.strip() for name, part in match.groupdict().items() if part is not None}
        parts = {name: part if name == _SEVERAL else unquoted(part) for name, part in found.items()}
        return self.reader(parts, demo_workspace)


def _form(pattern: str) -> Callable[[_Reader], _Form]:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda reader: _Form(compiled, reader)


@_form(r"(?:run|execute|exec)\s+(?P<command>.+)|[!$]\s*(?P<shell>\S.*)")
def _run(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    command = parts.get("command") or parts.get("shell", "")
    if re.fullmatch(r"(?:the |all )*(?:unit )?tests?(?: again)?\.?", command, re.IGNORECASE):
        command = "python3 -m pytest -q"
    return run_command(command)


@_form(
    rf"(?:create|make|write)\s+(?:(?:a|the|new|file|called|named)\s+)*(?P<path>{_WORD})\s+"
    r"(?:with|containing|that says|saying)\s+(?:(?:the\s+)?(?:text|contents?|words)\b\s*:?\s*)?(?P<text>.+)"
)
def _create(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    return create_file(parts["path"], parts["text"])


@_form(r".*\b(?:fix|repair|mend)\b.*\btests?\b.*|(?:start |show me |give me |take )?(?:the |a )?(?:guided )?tour\W*")
def _tour(_: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    return start_tour(demo_workspace)


@_form(
    rf"(?:replace|change|swap)\s+(?P<all>all\s+|every\s+)?(?P<old>{_TEXT})\s+(?:with|by|to|for)\s+(?P<new>{_TEXT})"
    rf"\s+in\s+(?:the\s+)?(?:file\s+)?(?P<path>{_WORD})(?P<everywhere>\s+everywhere)?"
)
def _replace(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    everywhere = "all" in parts or "everywhere" in parts
    return replace_text(demo_workspace.resolve(_path(parts["path"])), parts["old"], parts["new"], everywhere)


@_form(rf"(?:compare|diff)\s+(?P<left>{_WORD})\s+(?:and|with|to|against)?\s*(?P<right>{_WORD})")
def _compare(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    return compare_files(demo_workspace.resolve(_path(parts["left"])), demo_workspace.resolve(_path(parts["right"])))


@_form(
    r"(?:(?:list|ls|dir)(?:\s+(?:me|the|all|my))*(?:\s+(?:files?|director(?:y|ies)|folders?))?"
    r"|(?:show|what)(?:\s+(?:me|the|all|my))*\s+files?(?:\s+(?:are|do you see))?)(?:\s+(?:here|there))?"
    rf"(?:\s+(?:in|of|under|below)\s+(?P<path>{_WORD}))?\W*"
)
def _list(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    return list_files("**/*", parts.get("path"))


@_form(
    rf"(?:find|list|show)\s+(?:me\s+)?(?:all\s+)?(?:files?\s+)?(?:(?:named|called|like|matching)\s+)?"
    rf"(?P<pattern>[^\s\"'`]*[*][^\s\"'`]*)(?:\s+files?)?(?:\s+(?:in|under|below)\s+(?P<path>{_WORD}))?"
)
def _glob(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    pattern = parts["pattern"]
    return list_files(pattern if "/" in pattern else f"**/{pattern}", parts.get("path"))


@_form(
    rf"(?:find|search(?:\s+for)?|grep(?:\s+for)?|look\s+for|where\s+is)\s+(?P<text>{_TEXT})"
    rf"(?:\s+in\s+(?:the\s+)?(?:(?:file|folder|directory)\s+)?(?P<path>{_WORD}))?"
)
def _find(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    everywhere = parts.get("path", "").lower() in ("all", "every", "here", "files")
    return search_text(parts["text"], None if everywhere else parts.get("path"))


@_form(
    r"(?:read|show|open|cat|print|display|view|look at|what(?:'s| is) in)\s+(?:me\s+)?"
    r"(?:lines?\s+(?P<first>\d+)(?:\s*(?:-|–|to)\s*(?P<last>\d+))?\s+(?:of|in|from)\s+)?(?P<paths>.+)"
)
def _read(parts: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    paths = [demo_workspace.resolve(_path(path)) for path in _listed(parts[_SEVERAL])]
    if not paths:
        return None
    if "first" not in parts:
        return read_files(paths)
    first, last = int(parts["first"]), int(parts.get("last", parts["first"]))
    return read_files(paths, max(first, 1), max(last - first + 1, 1))


@_form(r"(?:help|\?|hi|hello|hey)\W*|(?:what|how)\b.*\b(?:can you|do you|do i|are you|use)\b.*|who are you\W*")
def _help(_: dict[str, str], demo_workspace: DemoWorkspace) -> DemoTurn | None:
    return DemoTurn(HELP)


_GREEDY: tuple[_Form, ...] = (_run, _create)
_FORMS: tuple[_Form, ...] = (_tour, _help, _replace, _compare, _list, _glob, _find, _read)


def unquoted(text: str) -> str:
    """Return the text without one pair of quotes around it and without punctuation after them."""
    text = _SENTENCE_END.sub(r"\1", text)
    if len(text) > 2 and _QUOTES.get(text[0]) == text[-1] and text[-1] not in text[1:-1]:
        return text[1:-1]
    return text


def _listed(text: str) -> list[str]:
    """Return the paths in a list with commas and `and`; none if one of them does not look like a path."""
    text = re.sub(r"^(?:(?:the|file|files|contents? of)\s+)+", "", text.strip(), flags=re.IGNORECASE)
    parts = re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", text)
    paths = [unquoted(part) for part in parts]
    good = all(path and (path != part or not re.search(r"\s", path)) for path, part in zip(paths, parts, strict=True))
    return paths if good else []


def _path(text: str) -> str:
    """Return a path without the full stop or question mark of its sentence."""
    return re.sub(r"(?<=[\w/])[.?!:]+$", "", text)
