"""Small tasks of the offline model with the user's real files: each makes one or two rounds of calls and reports."""

import difflib
import re
from dataclasses import dataclass

from tui_agent.protocol.messages import JsonObject

from .demo_transcript import Outcome
from .demo_turn import DemoCall, DemoTurn

_QUOTED_LINES = 12
_DIFF_LINES = 40
_RIPGREP_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")

LEFT_OUT = "Skipped."


@dataclass(frozen=True, slots=True)
class _Report:
    """Report of the results of calls, one paragraph each."""

    done: str
    """Text for a call that succeeded; `{lines}` and `{path}` are filled in."""
    quote: int = _QUOTED_LINES
    """Lines of the result to quote."""
    from_end: bool = False

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        return DemoTurn("\n\n".join(self._paragraph(outcome) for outcome in outcomes))

    def skip(self) -> DemoTurn:
        return DemoTurn(LEFT_OUT)

    def _paragraph(self, outcome: Outcome) -> str:
        lines = outcome.plain_lines
        if outcome.is_error:
            quoted = lines[-_QUOTED_LINES:]
            return (
                f"`{outcome.name}` did not work: {first_line(outcome.text)}"
                if len(lines) < 2
                else (f"`{outcome.name}` did not work:\n\n{fenced(quoted)}")
            )
        path = outcome.arguments.get("path", "")
        head = self.done.format(lines=_count(len(lines), "line"), path=path)
        quoted = lines[-self.quote :] if self.from_end else lines[: self.quote]
        return f"{head}\n\n{fenced(quoted)}" if self.quote and any(quoted) else head


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Comparison of two files that are being read."""

    paths: tuple[str, str]

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        failed = next((outcome for outcome in outcomes if outcome.is_error), None)
        if failed is not None or len(outcomes) != len(self.paths):
            return DemoTurn(f"I cannot compare them: {first_line(failed.text if failed else 'a file was not read')}")
        left, right = (outcome.plain_lines for outcome in outcomes)
        diff = list(difflib.unified_diff(left, right, *self.paths, lineterm="", n=1))
        if not diff:
            return DemoTurn(f"`{self.paths[0]}` and `{self.paths[1]}` have the same {_count(len(left), 'line')}.")
        changed = sum(line[:1] in "+-" and line[:3] not in ("+++", "---") for line in diff)
        sizes = f"`{self.paths[0]}` has {_count(len(left), 'line')}, `{self.paths[1]}` has {len(right)}"
        head = f"{sizes}; {_count(changed, 'line')} differ."
        return DemoTurn(f"{head}\n\n{fenced(diff[:_DIFF_LINES], 'diff')}")

    def skip(self) -> DemoTurn:
        return DemoTurn(LEFT_OUT)


@dataclass(frozen=True, slots=True)
class _EditAfterRead:
    """An edit, proposed once the file was read, as the edit tool demands."""

    arguments: JsonObject

    def proceed(self, outcomes: tuple[Outcome, ...]) -> DemoTurn:
        failed = next((outcome for outcome in outcomes if outcome.is_error), None)
        if failed is not None:
            return DemoTurn(f"I cannot change it: {first_line(failed.text)}")
        if outcomes and not any(self.arguments["old_string"] in "\n".join(o.plain_lines) for o in outcomes):
            return DemoTurn(f"The part I read does not contain `{self.arguments['old_string']}`, so nothing changes.")
        report = _Report("Done: `{path}` is changed.", quote=0)
        return DemoTurn("Here is the edit.", (DemoCall("edit", self.arguments),), report)

    def skip(self) -> DemoTurn:
        return DemoTurn(LEFT_OUT)


def read_files(paths: list[str], offset: int | None = None, limit: int | None = None) -> DemoTurn:
    """Return a turn that reads files, several at the same time."""
    pages = {"offset": offset, "limit": limit}
    page = {name: value for name, value in pages.items() if value is not None}
    calls = tuple(DemoCall("read", {"path": path, **page}) for path in paths)
    text = f"I'll read {_named(paths)}{' at the same time' if len(paths) > 1 else ''}."
    return DemoTurn(text, calls, _Report("`{path}`, {lines}:"), tools=frozenset({"read"}))


def compare_files(left: str, right: str) -> DemoTurn:
    """Return a turn that reads two files at the same time and compares them."""
    calls = tuple(DemoCall("read", {"path": path}) for path in (left, right))
    text = f"I'll read {_named([left, right])} at the same time and compare them."
    return DemoTurn(text, calls, _Comparison((left, right)), tools=frozenset({"read"}))


def search_text(text: str, path: str | None) -> DemoTurn:
    """Return a turn that searches files for literal text."""
    arguments: JsonObject = {"pattern": _RIPGREP_SPECIAL.sub(r"\\\1", text), "output_mode": "content"}
    if path:
        arguments["path"] = path
    words = f"I'll search for `{text}`{f' in `{path}`' if path else ''}."
    report = _Report("Found ({lines}):")
    return DemoTurn(words, (DemoCall("grep", arguments),), report, tools=frozenset({"grep"}))


def list_files(pattern: str, path: str | None) -> DemoTurn:
    """Return a turn that lists files by a glob pattern."""
    arguments: JsonObject = {"pattern": pattern, **({"path": path} if path else {})}
    words = f"I'll list the files{f' in `{path}`' if path else ''} that match `{pattern}`."
    report = _Report("{lines}:", quote=20)
    return DemoTurn(words, (DemoCall("glob", arguments),), report, tools=frozenset({"glob"}))


def run_command(command: str) -> DemoTurn:
    """Return a turn that runs a shell command as it was typed."""
    call = DemoCall("bash", {"command": command, "description": "Run your command"})
    report = _Report("The command finished. The end of its output:", from_end=True)
    return DemoTurn(f"I'll run `{first_line(command)}`.", (call,), report, tools=frozenset({"bash"}))


def replace_text(path: str, old: str, new: str, everywhere: bool) -> DemoTurn:
    """Return a turn that reads a file and then proposes an edit."""
    arguments: JsonObject = {"path": path, "old_string": old, "new_string": new}
    if everywhere:
        arguments["replace_all"] = True
    words = f"I'll read `{path}` first, then replace `{first_line(old)}` with `{first_line(new)}`."
    read = DemoCall("read", {"path": path})
    return DemoTurn(words, (read,), _EditAfterRead(arguments), tools=frozenset({"read", "edit"}))


def create_file(path: str, text: str) -> DemoTurn:
    """Return a turn that proposes a new file."""
    content = text if text.endswith("\n") else f"{text}\n"
    call = DemoCall("write", {"path": path, "content": content})
    report = _Report("Done: `{path}` is written.", quote=0)
    return DemoTurn(f"Here is the new file, `{path}`.", (call,), report, tools=frozenset({"write"}))


def first_line(text: str) -> str:
    """Return the first line of a text, cut to 200 characters."""
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 200 else f"{line[:200]}…"


def fenced(lines: list[str], language: str = "") -> str:
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
