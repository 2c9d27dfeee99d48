"""Tool calls as the protocol shows them: kind, title, places, changes of files, output and state. Pure."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acp.helpers import image_block, text_block, tool_content, tool_terminal_ref
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    ToolKind,
)

from tui_agent.protocol.diffs import Diff
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ApprovalRequested,
    FileChanged,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolUpdated,
)
from tui_agent.protocol.messages import TERMINAL_OUTPUT, DocumentBlock, ImageBlock, JsonObject, TextBlock, UserBlock
from tui_agent.protocol.visible_text import code_fence, without_sequences

Content = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
CallEvent = ToolCallStart | ToolCallProgress

TAIL = 16_384
"""Characters kept of the output of a running command."""
LONGEST_RESULT = 65_536
"""Characters shown of a result."""
LONGEST_TITLE = 200
MOST_CHANGES = 50
"""Parts of changed files shown for one call."""

_KINDS: Mapping[str, ToolKind] = {
    "read": "read",
    "skill": "read",
    "write": "edit",
    "edit": "edit",
    "glob": "search",
    "grep": "search",
    "find_tools": "search",
    "lookup": "search",
    "bash": "execute",
    "bash_output": "execute",
    "kill_bash": "execute",
    "fetch": "fetch",
    "agent": "think",
    "todo": "think",
}
_SHOWN_OTHERWISE = frozenset({"todo"})
"""Tools without a row: the plan shows what they do."""

_Key = tuple[str, str]


@dataclass(slots=True)
class _Call:
    id: str
    name: str
    arguments: JsonObject = field(default_factory=dict[str, object])
    title: str = ""
    in_terminal: bool = False
    """True if the client shows the output in a terminal."""
    is_over: bool = False
    output: str = ""
    """End of the output so far."""
    changes: list[FileEditToolCallContent] = field(default_factory=list[FileEditToolCallContent])
    places: list[ToolCallLocation] = field(default_factory=list[ToolCallLocation])

    @property
    def kind(self) -> ToolKind:
        return kind_of(self.name)


class CallUpdates:
    """The calls of a session; turns their events into updates."""

    def __init__(self, cwd: Path, *, terminals: bool = False) -> None:
        """
        Args:
            terminals: True if the client shows output of commands in terminals of its own, by `_meta`. The commands do
                not run there.
        """
        self._cwd = cwd
        self._terminals = terminals
        self._calls: dict[_Key, _Call] = {}
        """The calls of the current run."""
        self._ids: set[str] = set()

    def forget(self) -> None:
        """Forget the calls that are over, because their run is; a resumed run may continue the others."""
        # A model may use the id of a call again in a later run.
        self._calls = {key: call for key, call in self._calls.items() if not call.is_over}

    def apply(self, envelope: Envelope) -> Iterator[CallEvent]:
        """Yield the updates for one event; read all of them, because the state changes on the way."""
        event, agent = envelope.event, envelope.origin.agent_id
        match event:
            case ToolQueued(call_id=call_id, name=name, args_raw=arguments, summary=summary):
                yield from self._begin((agent, call_id), name, arguments, summary)
            case ToolStarted(call_id=call_id, name=name, args=arguments, summary=summary, preview=preview):
                yield from self._begin((agent, call_id), name, arguments, summary)
                call = self._calls[agent, call_id]
                if preview is not None and preview.diff:
                    call.changes = list(changes_of(preview.diff, preview.path or ""))
                yield from self._progress(call, status="in_progress", content=self._shown(call) or None)
            case ToolOutput(call_id=call_id, chunk=chunk):
                if (call := self._calls.get((agent, call_id))) is not None:
                    # Each update has the whole content again, so that it has to stay small.
                    call.output = (call.output + chunk)[-TAIL:]
                    content = None if call.in_terminal else self._shown(call)
                    yield from self._progress(call, content=content, field_meta=_terminal_output(call, chunk))
            case ToolProgress(call_id=call_id, text=text):
                if (call := self._calls.get((agent, call_id))) is not None:
                    yield from self._progress(call, content=[_text(text)])
            case ToolUpdated(call_id=call_id, partial=partial):
                if (call := self._calls.get((agent, call_id))) is not None:
                    yield from self._progress(call, content=list(_blocks(partial.content, is_output=False)))
            case FileChanged(call_id=str(call_id)):
                yield from self._change(self._calls.get((agent, call_id)), event)
            case ToolEnded():
                yield from self._end(agent, event)
            case _:
                pass

    def question(self, envelope: Envelope, request: ApprovalRequested, lines: Sequence[str]) -> ToolCallUpdate:
        """Return the call that a question is about.

        Args:
            lines: the question in words, with every character visible.
        """
        call = self._calls.get((envelope.origin.agent_id, request.call_id))
        changes: list[Content] = []
        if request.changes is not None:
            for file in request.changes.files:
                changes += changes_of(file.diff, os.path.normpath(self._cwd / file.path))
        elif request.preview is not None and request.preview.kind == "diff":
            changes += changes_of(request.preview.diff, request.preview.path or "")
        # A command may change thousands of files, and the client lays out each part.
        del changes[MOST_CHANGES:]
        return ToolCallUpdate(
            tool_call_id=call.id if call is not None else request.call_id,
            title=title_of(request.tool, request.summary),
            kind=kind_of(request.tool),
            status="pending",
            content=[*changes, _text(fenced("\n".join(lines)))],
            locations=[ToolCallLocation(path=target) for target in request.targets] or None,
            raw_input=request.args,
        )

    def _begin(self, key: _Key, name: str, arguments: JsonObject, summary: str) -> Iterator[CallEvent]:
        """Show a call that is not shown yet, or its new arguments."""
        call, title = self._calls.get(key), title_of(name, summary)
        if call is None:
            call = self._calls[key] = _Call(self._new_id(key[1]), name, arguments, title)
            call.in_terminal = self._terminals and name == "bash"
            call.places = list(_places(arguments, self._cwd))
            info = {"terminal_info": {"terminal_id": call.id, "cwd": str(self._cwd)}}
            if name not in _SHOWN_OTHERWISE:
                yield ToolCallStart(
                    session_update="tool_call",
                    tool_call_id=call.id,
                    title=title,
                    kind=call.kind,
                    status="pending",
                    content=self._shown(call) or None,
                    locations=call.places or None,
                    raw_input=arguments,
                    field_meta=info if call.in_terminal else None,
                )
        elif (arguments, title) != (call.arguments, call.title):
            call.arguments, call.title = arguments, title
            yield from self._progress(call, title=title, raw_input=arguments)

    def _new_id(self, call_id: str) -> str:
        """Return an id that no call of the session has: a model may use one again."""
        new, number = call_id, 1
        while new in self._ids:
            number += 1
            new = f"{call_id}-{number}"
        self._ids.add(new)
        return new

    def _change(self, call: _Call | None, event: FileChanged) -> Iterator[CallEvent]:
        if call is None:
            return
        if call.kind == "edit":
            call.changes.clear()  # The change that was made, in place of the announced one.
        call.changes += changes_of(event.diff, event.path)
        del call.changes[MOST_CHANGES:]
        if event.path not in [place.path for place in call.places] and len(call.places) < MOST_CHANGES:
            call.places.append(ToolCallLocation(path=event.path))
        yield from self._progress(call, content=self._shown(call), locations=call.places)

    def _end(self, agent: str, event: ToolEnded) -> Iterator[CallEvent]:
        if (agent, event.call_id) not in self._calls:
            yield from self._begin((agent, event.call_id), event.name, {}, "")
        call = self._calls[agent, event.call_id]
        call.is_over = True
        text = "\n".join(block.text for block in event.content if isinstance(block, TextBlock))
        meta: JsonObject | None = None
        if call.in_terminal and isinstance(code := (event.details or {}).get("exit_code"), int):
            # Of a saved session, the output is known as a whole only.
            meta = (_terminal_output(call, text) or {}) if not call.output else {}
            meta["terminal_exit"] = {"terminal_id": call.id, **_exit_of(code)}
        else:
            call.in_terminal = False
        is_output = event.details is not None and event.details.get(TERMINAL_OUTPUT) is True
        content: list[Content] = list(call.changes)
        if not (content and not event.is_error and call.kind == "edit"):
            content += _blocks(event.content, is_output=is_output)
        elif (event.details or {}).get("problems"):
            # What language servers found follows the words about the change.
            content += _blocks(event.content[1:], is_output=False)
        call.output = text[-TAIL:]  # For the changes of a command, which are found after its end.
        yield from self._progress(
            call,
            status="failed" if event.is_error else "completed",
            content=None if call.in_terminal else content,
            field_meta=meta,
        )

    def _shown(self, call: _Call) -> list[Content]:
        """Return the content of a running call."""
        if call.in_terminal:
            return [*call.changes, tool_terminal_ref(call.id)]
        output = without_sequences(call.output)
        return [*call.changes, *([_text(fenced(output))] if output and call.kind != "edit" else [])]

    def _progress(self, call: _Call, **fields: object) -> Iterator[CallEvent]:
        if call.name not in _SHOWN_OTHERWISE:
            # Only what changes: an absent field leaves what the client shows.
            given = {name: value for name, value in fields.items() if value is not None}
            yield ToolCallProgress.model_validate(
                {"session_update": "tool_call_update", "tool_call_id": call.id, **given}
            )


def kind_of(tool: str) -> ToolKind:
    """Return the protocol's kind of a tool."""
    return _KINDS.get(tool, "other")


def title_of(tool: str, summary: str) -> str:
    """Return the call in one line of Markdown; only a short line of its input, and always as code."""
    # Editors draw a title in one line, and some as Markdown.
    line = " ".join(summary.split())
    shown = f"{line[: LONGEST_TITLE - 1]}…" if len(line) > LONGEST_TITLE else line
    if not shown:
        return tool
    return in_code(shown) if tool == "bash" else f"{tool} {in_code(shown)}"


def in_code(text: str) -> str:
    """Return a line as Markdown code, whatever it contains."""
    ticks = code_fence(text, 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{text}{room}{ticks}"


def fenced(text: str) -> str:
    """Return a text as a Markdown code block, whatever it contains."""
    ticks = code_fence(text, 3)
    end = "" if text.endswith("\n") else "\n"
    return f"{ticks}\n{text}{end}{ticks}"


def changes_of(diff: Diff, path: str) -> Iterator[FileEditToolCallContent]:
    """Yield the hunks of a diff as old and new text."""
    for file in diff.files:
        for hunk in file.hunks:
            old = None if file.is_new else "".join(hunk.old)
            yield FileEditToolCallContent(type="diff", path=path, old_text=old, new_text="".join(hunk.new))


def _places(arguments: JsonObject, cwd: Path) -> Iterator[ToolCallLocation]:
    """Yield the file that the arguments name."""
    path, offset = arguments.get("path"), arguments.get("offset")
    if isinstance(path, str) and path and "\0" not in path:
        line = offset if isinstance(offset, int) and offset > 0 else None
        yield ToolCallLocation(path=os.path.normpath(cwd / path), line=line)


def _blocks(content: Sequence[UserBlock], *, is_output: bool) -> Iterator[Content]:
    for block in content:
        match block:
            case TextBlock(text=text):
                shown = without_sequences(text) if is_output else text
                cut = f"{shown[:LONGEST_RESULT]}\n…" if len(shown) > LONGEST_RESULT else shown
                if cut:
                    yield _text(fenced(cut))
            case ImageBlock(data=data, media_type=media_type):
                yield tool_content(image_block(data, media_type))
            case DocumentBlock():
                yield _text(in_code(block.label))


def _terminal_output(call: _Call, text: str) -> JsonObject | None:
    """Return the fields for the client's terminal of a call; None if it has none."""
    if not call.in_terminal:
        return None
    return {"terminal_output": {"terminal_id": call.id, "data": without_sequences(text)}}


def _exit_of(code: int) -> JsonObject:
    """Return the end of a process by its return code, which is negative for a signal."""
    return {"exit_code": None, "signal": str(-code)} if code < 0 else {"exit_code": code, "signal": None}


def _text(text: str) -> ContentToolCallContent:
    return tool_content(text_block(text))
