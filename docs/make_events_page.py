"""Writes `docs/events.md`: every event as its class describes it, and sequences as real runs tell them.

`python docs/make_events_page.py` writes the page; with `--stdout` it is only printed. The same code gives the same
page: ids are replaced by stable names, and times are left out.
"""

import argparse
import ast
import asyncio
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from event_scenes import SCENES, Scene, record

from tui_agent.protocol import events as events_module
from tui_agent.protocol.envelope import Envelope, Origin, event_classes
from tui_agent.protocol.events import Noticed
from tui_agent.protocol.messages import FrozenModel

PAGE = Path(__file__).parent / "events.md"

GLANCED_AT = {"agent.created", "status.changed", "context.usage", "usage.updated", "request.built"}
"""Events that all trees but the first leave out."""

HEAD = """\
# Events

Everything that happens is told as an event: frozen, complete, serialisable, needing no answer. The screen, the
journal and the streams of the headless mode are made of these and of nothing else. This page is written by
`docs/make_events_page.py` from the classes in `tui_agent/protocol/events.py` and from real runs of the engine; a test
compares it with what the script writes now. Type names and fields are frozen by another test.

A reader ignores types and fields it does not know. Neighbours of the types `message.delta`, `tool.output`,
`tool.update`, `tool.progress` and `context.usage` may come merged: text is put together, of the others the last one
counts. No other event is ever merged, dropped or told out of order.
"""

ENVELOPE_WORDS = """\
## The envelope

Each event stands in an envelope that says where and when; on disk and on the wire it is one JSON object a line, with
the event's own fields under `data`.
"""

TREES_WORDS = """\
## Sequences

Each tree is a real run: the real loop and the real executor, a scripted model, two little tools over a folder of notes.
One event a line, in the order in which they were told, with their essential fields; further in means further inside:
run, turn, step, message or call. The first tree shows everything; the others leave out {quiet}.
"""

ESSENTIAL: Mapping[str, tuple[str, ...]] = {
    "agent.created": ("model", "tools", "mode"),
    "run.started": ("input", "trigger", "mode"),
    "run.ended": ("reason", "final_text", "error", "steps", "tool_calls"),
    "turn.started": ("index", "trigger"),
    "turn.ended": ("index", "message_id", "result_ids"),
    "step.started": ("index", "kind"),
    "step.ended": ("index", "finish_reason"),
    "step.retry": ("attempt", "max", "error_kind", "discarded"),
    "request.built": ("message_count", "tools"),
    "steering.queued": ("message_id", "kind", "position", "text"),
    "steering.delivered": ("message_id", "boundary"),
    "steering.requeued": ("message_id", "reason"),
    "message.started": ("message_id", "role", "call_id"),
    "message.delta": ("message_id", "kind", "call_id", "delta"),
    "message.ended": ("message_id", "stop_reason"),
    "message.discarded": ("message_id", "reason"),
    "tool.queued": ("call_id", "name", "index", "safe", "summary"),
    "tool.blocked_on": ("call_id", "what", "on"),
    "tool.started": ("call_id", "name", "read_only", "timeout_s", "adopted_from"),
    "tool.ended": ("call_id", "name", "status", "is_error"),
    "tool.batch_started": ("batch_id", "strategy", "call_ids"),
    "tool.batch_ended": ("batch_id", "call_ids", "steering"),
    "hook.started": ("call_id", "event", "name"),
    "hook.ended": ("call_id", "event", "name", "action", "reason"),
    "permission.decided": ("call_id", "decision", "source", "mode"),
    "approval.requested": ("request_id", "call_id", "tool", "summary", "options"),
    "approval.resolved": ("request_id", "call_id", "decision", "scope", "by", "note"),
    "context.usage": ("window", "source"),
    "usage.updated": ("delta",),
    "status.changed": ("status", "detail"),
    "warning": ("code",),
    "notice": ("code",),
}
"""What a tree shows of each event; a run that tells another type is an error here."""

BARE = frozenset(("index", "message_id", "call_id", "request_id", "batch_id", "kind", "role", "name", "tool", "what"))
"""Fields whose value says what it is."""

_ID = re.compile(r"\b(msg|run|batch|ask)_[0-9a-f]{16}\b")
_COLUMN = 32
_WIDTH = 120


def page() -> str:
    """The whole page."""
    parts = [HEAD, *_envelope_section(), *_event_sections(), *_union_section()]
    quiet = ", ".join(f"`{name}`" for name in sorted(GLANCED_AT))
    parts.append(_filled(TREES_WORDS.format(quiet=quiet)))
    parts += [_tree_section(scene) for scene in SCENES]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def tree(envelopes: Iterable[Envelope], *, whole: bool) -> list[str]:
    """A run's events, a line each, indented by what they happen inside of."""
    names = _StableNames()
    roles: dict[str, str] = {}
    lines: list[str] = []
    for envelope in envelopes:
        event: Any = envelope.event
        if event.type == "message.started":
            roles[event.message_id] = event.role
        shown = [_shown(name, value) for name in ESSENTIAL[event.type] if _says(name, value := getattr(event, name))]
        head = "  " * _depth(event, roles) + event.type
        line = names.stable(f"{head:<{_COLUMN}}{' '.join(shown)}".rstrip())
        if whole or event.type not in GLANCED_AT:
            lines.append(line)
    return lines


@dataclass
class _StableNames:
    """Random ids become `msg_1`, `msg_2` and so on, in the order of their first mention."""

    known: dict[str, str] = field(default_factory=dict)

    def stable(self, text: str) -> str:
        return _ID.sub(self._name, text)

    def _name(self, match: re.Match[str]) -> str:
        kind = match[1]
        if match[0] not in self.known:
            number = 1 + sum(name.startswith(f"{kind}_") for name in self.known.values())
            self.known[match[0]] = f"{kind}_{number}"
        return self.known[match[0]]


def _depth(event: Any, roles: Mapping[str, str]) -> int:
    """How far inside a run an event happens."""
    kind = event.type.split(".")[0]
    if kind in ("agent", "run"):
        return 0
    if event.type in ("tool.batch_started", "tool.batch_ended"):
        return 2
    if event.type in ("tool.queued", "tool.ended"):
        return 3
    if event.type == "message.delta" or (kind != "message" and hasattr(event, "call_id")):
        return 4
    if kind == "message":
        return 1 if roles[event.message_id] == "user" else 3
    return {"step": 2, "request": 3}.get(kind, 1)


def _says(name: str, value: object) -> bool:
    """Whether a field is worth its place: nothing empty, no flag that is down, no count of nothing."""
    if value is None or value is False or value in ("", ()):
        return False
    return value != 0 or name in BARE


def _shown(name: str, value: Any) -> str:
    if isinstance(value, FrozenModel):
        value = ",".join(f"{key}:{part}" for key, part in value.model_dump().items() if part)
    if isinstance(value, tuple):
        value = ",".join(str(part) for part in value)
    if value is True:
        return name
    text = str(value)
    if " " in text and not text.startswith("{"):
        text = f'"{text}"'
    return text if name in BARE or name == "delta" else f"{name}={text}"


def _tree_section(scene: Scene) -> str:
    lines = tree(asyncio.run(record(scene)), whole=scene.whole)
    return "\n".join([f"### {scene.title}", "", _filled(scene.words), "", "```", *lines, "```"])


def _envelope_section() -> Iterator[str]:
    """The fields of a line, in the order in which they are written."""
    yield ENVELOPE_WORDS
    words = {**_field_words(Origin), **_field_words(Envelope)}
    words |= {"type": "The event's type name.", "data": "The event's own fields."}
    types = {**_field_types(Origin), **_field_types(Envelope), "type": "str", "data": "object"}
    line = Envelope(Noticed(code="", text=""), seq=1, ts=0, mono=0.0, origin=Origin()).to_json()
    yield "\n".join(_bullet(name, types[name], words.get(name, "")) for name in json.loads(line))


def _event_sections() -> Iterator[str]:
    """One section a group of `protocol/events.py`, one entry an event."""
    group = ""
    yield "## Every event\n"
    for cls in event_classes().values():
        title = _group_of(cls)
        if title != group:
            group = title
            yield f"### {group[0].upper()}{group[1:]}\n"
        yield _event_entry(cls)


def _event_entry(cls: type[Any]) -> str:
    types, words = _field_types(cls), _field_words(cls)
    bullets = [_bullet(name, kind, words.get(name, "")) for name, kind in types.items() if name != "type"]
    about = f"`{cls.__name__}`: {_one_paragraph(cls.__doc__ or '')}"
    return "\n".join([f"#### `{cls.model_fields['type'].default}`", "", _filled(about), "", *bullets])


def _union_section() -> Iterator[str]:
    """The names whose values fields are made of."""
    yield "### Values\n"
    lines: list[str] = []
    for name in ("ToolStatus", "Status", "BlockedOn", "InputSource"):
        values = ", ".join(f"`{value}`" for value in get_args(getattr(events_module, name)))
        lines += [f"**{name}**: {values}.", ""]
    yield "\n".join(textwrap.fill(line, _WIDTH, break_on_hyphens=False) for line in lines)


def _bullet(name: str, kind: str, words: str) -> str:
    return f"- `{name}`: `{kind}`" + (f" – {words}" if words else "")


def _group_of(cls: type[Any]) -> str:
    """The heading comment above a class."""
    source = Path(events_module.__file__).read_text("utf-8")
    before = source[: source.index(f"class {cls.__name__}(")]
    return re.findall(r"^# --- (.+?) -+$", before, re.MULTILINE)[-1]


def _field_types(cls: type[Any]) -> dict[str, str]:
    """Each field with its annotation as it is written, inherited ones included; with a default where it has one."""
    types: dict[str, str] = {}
    for node in _annotations(cls):
        assert isinstance(node.target, ast.Name)
        default = "" if node.value is None or "Field(" in ast.unparse(node.value) else f" = {ast.unparse(node.value)}"
        types[node.target.id] = (ast.unparse(node.annotation) + default).replace("'", '"')
    return types


def _field_words(cls: type[Any]) -> dict[str, str]:
    """The text under each field that has one."""
    words: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        body = _body(base)
        for node, after in itertools.pairwise(body):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(after, ast.Expr):
                assert isinstance(after.value, ast.Constant)
                words[node.target.id] = _one_paragraph(str(after.value.value))
    return words


def _annotations(cls: type[Any]) -> Iterator[ast.AnnAssign]:
    for base in reversed(cls.__mro__):
        yield from (node for node in _body(base) if isinstance(node, ast.AnnAssign))


def _body(cls: type[Any]) -> list[ast.stmt]:
    """The statements of one of our own classes."""
    if not cls.__module__.startswith("tui_agent.") or cls is FrozenModel:
        return []
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)
    return definition.body


def _one_paragraph(text: str) -> str:
    return " ".join(text.split())


def _filled(text: str) -> str:
    paragraphs = text.rstrip("\n").split("\n\n")
    return "\n\n".join(
        paragraph
        if paragraph.startswith("#")
        else textwrap.fill(_one_paragraph(paragraph), _WIDTH, break_on_hyphens=False, break_long_words=False)
        for paragraph in paragraphs
    )


def main() -> None:
    """Writes or prints the page."""
    arguments = argparse.ArgumentParser(description="Writes docs/events.md.")
    arguments.add_argument("--stdout", action="store_true", help="print the page instead of writing it")
    text = page()
    if arguments.parse_args().stdout:
        sys.stdout.write(text)
    else:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
