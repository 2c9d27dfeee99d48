"""Tasks of the offline model: their records, and small ones with the user's real files.

Each of those makes one or two rounds of calls and reports.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias

from tui_agent.protocol.messages import JsonObject, is_array, is_object

_NOTICE = re.compile(r"^\s*<system-notice>.*</system-notice>\s*$", re.DOTALL)
_POSTPONED = re.compile(r"user sent a message first|queued user message", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"^ *\d+\t", re.MULTILINE)
_FOOTNOTES = re.compile(r"(?:(?:^|\n)\[[^\n]*\])+\s*$")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call and its result."""

    call_id: str
    name: str
    arguments: JsonObject
    text: str = ""
    is_error: bool = False

    @property
    def postponed(self) -> bool:
        """True if the call did not run because the user sent a message first."""
        return self.is_error and bool(_POSTPONED.search(self.text))

    @property
    def plain_lines(self) -> list[str]:
        """Lines of the result; for a file that was read, without line numbers and notes."""
        if self.name != "read":
            return self.text.splitlines()
        return _LINE_NUMBER.sub("", _FOOTNOTES.sub("", self.text)).splitlines()


Outcomes: TypeAlias = tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Exchange:
    """The calls of one answer, and the messages the user sent while they ran."""

    outcomes: Outcomes
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """The last prompt and everything after it."""

    prompt: str = ""
    said: tuple[str, ...] = ()
    """Messages before the first answer."""
    exchanges: tuple[Exchange, ...] = ()
    first: bool = True
    """True if this is the first prompt of the conversation."""
    tools: frozenset[str] = frozenset()
    """Names of the tools that may be called."""


@dataclass(frozen=True, slots=True)
class DemoCall:
    """A tool call."""

    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class DemoTurn:
    """One answer, or a part of one."""

    text: str = ""
    calls: tuple[DemoCall, ...] = ()
    waits: "Goal | None" = field(default=None, compare=False)
    """Goal that receives the results; set exactly when there are calls."""
    thinking: str = ""
    fresh_sample: bool = False
    """True if the sample project must be copied anew before the calls run."""
    in_tour: bool = False
    tools: frozenset[str] = frozenset()
    """Tools that the whole goal needs."""

    def after(self, text: str) -> "DemoTurn":
        """Return the turn with a text before its own."""
        return replace(self, text="\n\n".join(part for part in (text, self.text) if part))


Goal: TypeAlias = Callable[[Outcomes | None], DemoTurn]
"""Returns the turn after the results of its calls; None: they are skipped."""


def read_request(body: JsonObject) -> Task:
    """Return the last prompt (a user message without tool results) and everything after it; skip invalid parts."""
    tools = frozenset(name for tool in _objects(body.get("tools")) if isinstance(name := tool.get("name"), str))
    task = Task(tools=tools)
    started = False
    calls: dict[str, Outcome] = {}
    for message in _objects(body.get("messages")):
        blocks = _blocks(message)
        if message.get("role") == "assistant":
            calls = {call.call_id: call for call in _calls(blocks)}
            continue
        said = tuple(_words(blocks))
        outcomes = tuple(_outcomes(blocks, calls))
        calls = {}
        if outcomes:
            task = replace(task, exchanges=(*task.exchanges, Exchange(outcomes, said)))
        elif said:
            task = Task(said[0], said[1:], first=not started, tools=tools)
            started = True
    return task


def _calls(blocks: list[JsonObject]) -> Iterator[Outcome]:
    for block in blocks:
        if block.get("type") == "tool_use":
            arguments: object = block.get("input")
            yield Outcome(str(block.get("id")), str(block.get("name")), arguments if is_object(arguments) else {})


def _outcomes(blocks: list[JsonObject], calls: dict[str, Outcome]) -> Iterator[Outcome]:
    for block in blocks:
        call = calls.get(str(block.get("tool_use_id"))) if block.get("type") == "tool_result" else None
        if call is not None:
            yield replace(call, text="\n".join(_texts(block.get("content"))), is_error=block.get("is_error") is True)


def _words(blocks: list[JsonObject]) -> Iterator[str]:
    """Yield the user's texts, without notices of the system."""
    for text in _texts(blocks):
        if not _NOTICE.match(text) and text.strip():
            yield text.strip()


def _blocks(message: JsonObject) -> list[JsonObject]:
    content: object = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(_objects(content))


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in _objects(content):
        text: object = block.get("text")
        if block.get("type") == "text" and isinstance(text, str):
            yield text


def _objects(value: object) -> Iterator[JsonObject]:
    if is_array(value):
        for item in value:
            if is_object(item):
                yield item


_QUOTED_LINES = 12
_DIFF_LINES = 40
_RIPGREP_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")
_LEFT_OUT = DemoTurn("Skipped.")


def _report(done: str, quote: int = _QUOTED_LINES, *, from_end: bool = False) -> Goal:
    """Return a goal that reports the results of calls, one paragraph each, with `quote` lines of the result."""

    def paragraph(outcome: Outcome) -> str:
        lines = outcome.plain_lines
        if outcome.is_error:
            failed = f"`{outcome.name}` did not work:"
            return (
                f"{failed} {first_line(outcome.text)}"
                if len(lines) < 2
                else f"{failed}\n\n{_fenced(lines[-_QUOTED_LINES:])}"
            )
        head = done.format(lines=_count(len(lines), "line"), path=outcome.arguments.get("path", ""))
        quoted = lines[-quote:] if from_end else lines[:quote]
        return f"{head}\n\n{_fenced(quoted)}" if quote and any(quoted) else head

    def goal(outcomes: Outcomes | None) -> DemoTurn:
        return _LEFT_OUT if outcomes is None else DemoTurn("\n\n".join(map(paragraph, outcomes)))

    return goal


def read_files(paths: list[str], offset: int | None = None, limit: int | None = None) -> DemoTurn:
    """Return a turn that reads files, several at the same time."""
    pages = {"offset": offset, "limit": limit}
    page = {name: value for name, value in pages.items() if value is not None}
    calls = tuple(DemoCall("read", {"path": path, **page}) for path in paths)
    text = f"I'll read {_named(paths)}{' at the same time' if len(paths) > 1 else ''}."
    return DemoTurn(text, calls, _report("`{path}`, {lines}:"), tools=frozenset({"read"}))


def compare_files(left: str, right: str) -> DemoTurn:
    """Return a turn that reads two files at the same time and compares them."""
    calls = tuple(DemoCall("read", {"path": path}) for path in (left, right))
    text = f"I'll read {_named([left, right])} at the same time and compare them."
    return DemoTurn(text, calls, partial(_compared, (left, right)), tools=frozenset({"read"}))


def _compared(paths: tuple[str, str], outcomes: Outcomes | None) -> DemoTurn:
    if outcomes is None:
        return _LEFT_OUT
    failed = first_error(outcomes)
    if failed is not None or len(outcomes) != len(paths):
        return DemoTurn(f"I cannot compare them: {first_line(failed.text if failed else 'a file was not read')}")
    left, right = (outcome.plain_lines for outcome in outcomes)
    diff = list(difflib.unified_diff(left, right, *paths, lineterm="", n=1))
    if not diff:
        return DemoTurn(f"`{paths[0]}` and `{paths[1]}` have the same {_count(len(left), 'line')}.")
    changed = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in diff)
    sizes = f"`{paths[0]}` has {_count(len(left), 'line')}, `{paths[1]}` has {len(right)}"
    return DemoTurn(f"{sizes}; {_count(changed, 'line')} differ.\n\n{_fenced(diff[:_DIFF_LINES], 'diff')}")


def search_text(text: str, path: str | None) -> DemoTurn:
    """Return a turn that searches files for literal text."""
    arguments: JsonObject = {"pattern": _RIPGREP_SPECIAL.sub(r"\\\1", text), "output_mode": "content"}
    if path:
        arguments["path"] = path
    words = f"I'll search for `{text}`{f' in `{path}`' if path else ''}."
    return DemoTurn(words, (DemoCall("grep", arguments),), _report("Found ({lines}):"), tools=frozenset({"grep"}))


def list_files(pattern: str, path: str | None) -> DemoTurn:
    """Return a turn that lists files by a glob pattern."""
    arguments: JsonObject = {"pattern": pattern, **({"path": path} if path else {})}
    words = f"I'll list the files{f' in `{path}`' if path else ''} that match `{pattern}`."
    return DemoTurn(words, (DemoCall("glob", arguments),), _report("{lines}:", quote=20), tools=frozenset({"glob"}))


def run_command(command: str) -> DemoTurn:
    """Return a turn that runs a shell command as it was typed."""
    call = DemoCall("bash", {"command": command, "description": "Run your command"})
    report = _report("The command finished. The end of its output:", from_end=True)
    return DemoTurn(f"I'll run `{first_line(command)}`.", (call,), report, tools=frozenset({"bash"}))


def replace_text(path: str, old: str, new: str, everywhere: bool) -> DemoTurn:
    """Return a turn that reads a file, as the edit tool demands, and then proposes an edit."""
    arguments: JsonObject = {"path": path, "old_string": old, "new_string": new}
    if everywhere:
        arguments["replace_all"] = True
    words = f"I'll read `{path}` first, then replace `{first_line(old)}` with `{first_line(new)}`."
    read = DemoCall("read", {"path": path})
    return DemoTurn(words, (read,), partial(_edit_after_read, arguments), tools=frozenset({"read", "edit"}))


def _edit_after_read(arguments: JsonObject, outcomes: Outcomes | None) -> DemoTurn:
    if outcomes is None:
        return _LEFT_OUT
    if failed := first_error(outcomes):
        return DemoTurn(f"I cannot change it: {first_line(failed.text)}")
    if outcomes and not any(arguments["old_string"] in "\n".join(one.plain_lines) for one in outcomes):
        return DemoTurn(f"The part I read does not contain `{arguments['old_string']}`, so nothing changes.")
    report = _report("Done: `{path}` is changed.", quote=0)
    return DemoTurn("Here is the edit.", (DemoCall("edit", arguments),), report)


def create_file(path: str, text: str) -> DemoTurn:
    """Return a turn that proposes a new file."""
    content = text if text.endswith("\n") else f"{text}\n"
    call = DemoCall("write", {"path": path, "content": content})
    report = _report("Done: `{path}` is written.", quote=0)
    return DemoTurn(f"Here is the new file, `{path}`.", (call,), report, tools=frozenset({"write"}))


def first_error(outcomes: Outcomes) -> Outcome | None:
    """Return the first failed call; None if all succeeded."""
    return next((outcome for outcome in outcomes if outcome.is_error), None)


def first_line(text: str) -> str:
    """Return the first line of a text, cut to 200 characters."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 200 else f"{line[:200]}…"


def _fenced(lines: list[str], language: str = "") -> str:
    """Return lines as a code block whose fence does not occur in them."""
    fence = "```"
    while any(fence in line for line in lines):
        fence += "`"
    return "\n".join([f"{fence}{language}", *lines, fence])


def _named(paths: list[str]) -> str:
    quoted = [f"`{path}`" for path in paths]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
