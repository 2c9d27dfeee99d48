"""Generator of `docs/events.md`: every event with the docstrings of its class, and sequences recorded from real runs.

`python docs/make_events_page.py` writes the page, `--stdout` prints it. The output is reproducible: ids are replaced by
stable names, and times are left out.
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

FREQUENT = {"agent.created", "status.changed", "context.usage", "usage.updated", "request.built"}
"""Frequent events that all trees but the first leave out."""

HEAD = """\
# Events

The engine publishes every fact as an event: frozen, complete, serialisable, without an answer. Screen, journal and the
streams of the headless mode are made of these events only. `docs/make_events_page.py` generates this page from the
classes in `tui_agent/protocol/events.py` and from real runs of the engine; a test checks that it is up to date. Another
test freezes type names and fields.

Readers ignore unknown types and fields. Neighbouring events of the types `message.delta`, `tool.output`, `tool.update`,
`tool.progress` and `context.usage` may be merged: text is concatenated, of the others the last one is kept. No other
event is ever merged, dropped or reordered.
"""

ENVELOPE_WORDS = """\
## The envelope

Each event has an envelope with its origin, number and time. On disk and on the wire it is one JSON object a line, with
the event's own fields under `data`.
"""

TREES_WORDS = """\
## Sequences

Each tree is a recorded run of the real engine with a scripted model and two small tools for a folder of notes. It shows
one event a line, in the order of publication, with the most important fields, indented by run, turn, step, message and
call. The first tree shows all events; the others leave out {quiet}.
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
    "changes.proposed": ("call_id",),
    "changes.kept": ("call_id", "paths", "count", "by"),
    "changes.discarded": ("call_id", "paths", "count", "reason"),
    "file.changed": ("call_id", "path", "change"),
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
"""Fields of each event that a tree shows; a run with any other event type is an error."""

BARE = frozenset(("index", "message_id", "call_id", "request_id", "batch_id", "kind", "role", "name", "tool", "what"))
"""Fields that are shown without their name."""

_ID = re.compile(r"\b(msg|run|batch|ask)_[0-9a-f]{16}\b")
_COLUMN = 32
_WIDTH = 120


def page() -> str:
    """Return the page."""
    parts = [HEAD, *_envelope_section(), *_event_sections(), *_union_section()]
    quiet = ", ".join(f"`{name}`" for name in sorted(FREQUENT))
    parts.append(_filled(TREES_WORDS.format(quiet=quiet)))
    parts += [_tree_section(scene) for scene in SCENES]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def tree(envelopes: Iterable[Envelope], *, whole: bool) -> list[str]:
    """Return the events of a run, a line each, indented by their scope."""
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
        if whole or event.type not in FREQUENT:
            lines.append(line)
    return lines


@dataclass
class _StableNames:
    """Replaces random ids by `msg_1`, `msg_2` and so on, in the order of first use."""

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
    """Return the indentation of an event."""
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
    """True if a field is shown: it is not empty, False or zero."""
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
    """Yield the section about the fields of a line, in the order of the line."""
    yield ENVELOPE_WORDS
    words = {**_field_words(Origin), **_field_words(Envelope)}
    words |= {"type": "The event's type name.", "data": "The event's own fields."}
    types = {**_field_types(Origin), **_field_types(Envelope), "type": "str", "data": "object"}
    line = Envelope(Noticed(code="", text=""), seq=1, ts=0, mono=0.0, origin=Origin()).to_json()
    yield "\n".join(_bullet(name, types[name], words.get(name, "")) for name in json.loads(line))


def _event_sections() -> Iterator[str]:
    """Yield a section for each group of events, with an entry for each event."""
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
    """Yield the section about the values of literal types."""
    yield "### Values\n"
    lines: list[str] = []
    for name in ("ToolStatus", "Status", "BlockedOn", "InputSource"):
        values = ", ".join(f"`{value}`" for value in get_args(getattr(events_module, name)))
        lines += [f"**{name}**: {values}.", ""]
    yield "\n".join(textwrap.fill(line, _WIDTH, break_on_hyphens=False) for line in lines)


def _bullet(name: str, kind: str, words: str) -> str:
    return f"- `{name}`: `{kind}`" + (f" – {words}" if words else "")


def _group_of(cls: type[Any]) -> str:
    """Return the heading comment above a class."""
    source = Path(sys.modules[cls.__module__].__file__ or "").read_text("utf-8")
    before = source[: source.index(f"class {cls.__name__}(")]
    return re.findall(r"^# --- (.+?) -+$", before, re.MULTILINE)[-1]


def _field_types(cls: type[Any]) -> dict[str, str]:
    """Return the annotation and default of each field, inherited ones included."""
    types: dict[str, str] = {}
    for node in _annotations(cls):
        assert isinstance(node.target, ast.Name)
        default = "" if node.value is None or "Field(" in ast.unparse(node.value) else f" = {ast.unparse(node.value)}"
        types[node.target.id] = (ast.unparse(node.annotation) + default).replace("'", '"')
    return types


def _field_words(cls: type[Any]) -> dict[str, str]:
    """Return the docstring of each field that has one."""
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
    """Return the statements of a class of tui_agent."""
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
    """Write or print the page."""
    arguments = argparse.ArgumentParser(description="Writes docs/events.md.")
    arguments.add_argument("--stdout", action="store_true", help="print the page instead of writing it")
    text = page()
    if arguments.parse_args().stdout:
        sys.stdout.write(text)
    else:
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
