"""The answers of the offline model, as a pure function of the request.

It replays the conversation since the last prompt through its goals, with the real results of the calls, and returns the
next turn. Messages of the user in between change the plan at the point where they arrived. Plain English becomes goals
by a few sentence forms, which are tried in order.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .demo_task import (
    DemoTurn,
    Exchange,
    Task,
    compare_files,
    create_file,
    first_line,
    list_files,
    read_files,
    replace_text,
    run_command,
    search_text,
)
from .guided_tour import DemoWorkspace

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
_Form: TypeAlias = Callable[[str, DemoWorkspace], DemoTurn | None]
"""The same for a whole sentence."""


def _form(pattern: str) -> Callable[[_Reader], _Form]:
    """Make a function that reads the parts of a sentence one that reads the sentences that match a pattern."""
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)

    def made(reader: _Reader) -> _Form:
        def form(words: str, demo_workspace: DemoWorkspace) -> DemoTurn | None:
            if (match := compiled.fullmatch(words)) is None:
                return None
            found = {name: part.strip() for name, part in match.groupdict().items() if part is not None}
            parts = {name: part if name == _SEVERAL else unquoted(part) for name, part in found.items()}
            return reader(parts, demo_workspace)

        return form

    return made


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
    return demo_workspace.start_tour()


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


LABEL = "*Scripted demo, not a language model: the words are fixed, the tools and files are real.*"
"""Notice in the first answer of a conversation; the screen shows it all the time as well."""

_Steer: TypeAlias = Literal["stop", "skip", "instead", "also", "go_on", "other"]

_STOP = re.compile(r"(?:please\s+)?(?:stop|halt|abort|cancel|quit|enough|that'?s enough|never ?mind)\b.*", re.I | re.S)
_SKIP = re.compile(r"(?:please\s+)?(?:skip|next|leave (?:that|this|it) out)\b.*", re.IGNORECASE | re.DOTALL)
_GO_ON = re.compile(r"(?:please\s+)?(?:go on|continue|carry on|proceed|ok(?:ay)?|yes|good|thanks?)\b\W*", re.IGNORECASE)
_INSTEAD = re.compile(r"(?:no\b[,;]?\s*)?(?:instead\b[,:]?\s*(.+)|(.+?)[,]?\s+instead\W*)", re.IGNORECASE | re.DOTALL)
_ALSO = re.compile(r"(?:and\s+)?(?:also|additionally)\b[,:]?\s*(.+)|(.+?)[,]?\s+(?:too|as well)\W*", re.I | re.S)

_ABOUT_STEERING = "While I work, I only understand `stop`, `skip`, `instead …` and `also …` with one of my sentences."


@dataclass(frozen=True, slots=True)
class _Plan:
    """The current turn, and those that follow when its goal is finished."""

    turn: DemoTurn
    later: tuple[DemoTurn, ...] = ()

    def settled(self) -> "_Plan":
        """Return the plan with each finished turn merged into the one after it."""
        plan = self
        while not plan.turn.calls and plan.later:
            plan = _Plan(plan.later[0].after(plan.turn.text), plan.later[1:])
        return plan


def next_turn(task: Task, demo_workspace: DemoWorkspace) -> DemoTurn:
    """Return the next answer."""
    plan = _opening(task, demo_workspace)
    for words in task.said:
        if _is_understood(words, demo_workspace):
            plan = _steered(plan, words, demo_workspace)
    for exchange in task.exchanges:
        plan = _after(plan.settled(), exchange, demo_workspace)
    turn = _possible(plan.settled().turn, task.tools)
    labelled = not task.first or task.exchanges or HELP in turn.text
    return turn if labelled else turn.after(LABEL)


def _opening(task: Task, demo_workspace: DemoWorkspace) -> _Plan:
    words = task.prompt
    if _STOP.fullmatch(words) or _SKIP.fullmatch(words):
        return _Plan(DemoTurn("Nothing is running, so there is nothing to stop or skip."))
    goals = understand(words, demo_workspace) or understand(_bare(words), demo_workspace)
    if goals is None:
        return _Plan(DemoTurn(f"I don't understand that. {HELP}"))
    return _Plan(goals[0], tuple(goals[1:]))


def _after(plan: _Plan, exchange: Exchange, demo_workspace: DemoWorkspace) -> _Plan:
    """Return the plan after the results of the calls and the messages of the user."""
    turn = plan.turn
    if turn.waits is None:
        return plan
    if exchange.said and any(outcome.postponed for outcome in exchange.outcomes):
        following = turn.after("Now for the calls that waited for your message.")
    else:
        following = turn.waits(exchange.outcomes)
    in_tour = any(one.in_tour for one in (turn, *plan.later))
    plan = replace(plan, turn=following)
    for words in exchange.said:
        plan = _steered(plan, words, replace(demo_workspace, in_tour=in_tour))
    return plan


def _steered(plan: _Plan, words: str, demo_workspace: DemoWorkspace) -> _Plan:
    """Return the plan after a message of the user."""
    kind, rest = _steer_of(words)
    quoted = f"You wrote “{first_line(words)}”"
    if kind == "stop":
        return _Plan(DemoTurn(f"{quoted}: stopping here. Finished steps stay; the rest is not done."))
    if kind == "go_on":
        return plan
    if kind == "skip":
        waits = plan.settled().turn.waits
        if waits is None:
            return replace(plan, turn=DemoTurn(f"{plan.turn.text}\n\nThere was nothing left to skip."))
        return replace(plan.settled(), turn=waits(None).after(f"{quoted}."))
    goals = understand(rest, demo_workspace)
    if goals is None:
        words = f"{quoted}, which I don't understand, so I'll continue. {_ABOUT_STEERING}"
        return replace(plan, turn=plan.turn.after(words))
    if kind == "also":
        return _Plan(
            goals[0].after(f"{quoted}: I'll do that first, then continue."), (*goals[1:], plan.turn, *plan.later)
        )
    return _Plan(goals[0].after(f"{quoted}: I'll drop my current task and do that."), tuple(goals[1:]))


def _steer_of(words: str) -> tuple[_Steer, str]:
    """Return the kind of a message during a run, and the request in it."""
    plain = words.strip()
    if len(plain) > LONGEST:
        return "other", plain
    if _STOP.fullmatch(plain):
        return "stop", ""
    if _SKIP.fullmatch(plain):
        return "skip", ""
    if _GO_ON.fullmatch(plain):
        return "go_on", ""
    if match := _INSTEAD.fullmatch(plain):
        return "instead", match[1] or match[2]
    if match := _ALSO.fullmatch(plain):
        return "also", match[1] or match[2]
    return "other", plain


def _is_understood(words: str, demo_workspace: DemoWorkspace) -> bool:
    """Return True if a text is a message for the model, and not an attachment such as a file."""
    kind, rest = _steer_of(words)
    return kind in ("stop", "skip") or bool(rest and understand(rest, demo_workspace))


def _bare(words: str) -> str:
    """Return a prompt without a word that only makes sense during a run, such as `also`."""
    return _steer_of(words)[1] or words


def _possible(turn: DemoTurn, tools: frozenset[str]) -> DemoTurn:
    """Return the turn, or a refusal if the request has not all tools it needs."""
    missing = sorted({call.name for call in turn.calls} - tools | (turn.tools - tools if turn.calls else set()))
    if not missing:
        return turn
    names = ", ".join(f"`{name}`" for name in missing)
    return DemoTurn(f"I cannot do that: this session has no tool named {names}.")
