"""Where and when an event happened, and its form on disk and on the wire: one JSON object a line (engine §5.1)."""

import json
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import get_args

from pydantic import ValidationError

from .events import EVENT_ADAPTER, SCHEMA_VERSION, AgentEvent
from .messages import Word, is_array, is_object

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who tells events: which session, run and agent, and how far along."""

    session_id: str = ""
    run_id: str | None = None
    agent_id: str = "main"
    parent_call_id: str | None = None
    """The tool call that started this agent; None for the root."""
    depth: int = 0
    """0 for the root agent, 1 for its sub-agents, and so on."""
    turn: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Envelope:
    """One event with its place in the session."""

    event: AgentEvent
    seq: int
    """Strictly increasing within a session."""
    ts: int
    """Milliseconds since the epoch."""
    mono: float
    """Seconds on the monotonic clock of the process that told it."""
    origin: Origin
    v: int = SCHEMA_VERSION

    @property
    def type(self) -> str:
        """The event's type name."""
        return self.event.type

    def with_event(self, event: AgentEvent) -> "Envelope":
        """The same envelope around another event; used when neighbours are merged."""
        return replace(self, event=event)

    def to_json(self) -> str:
        """One compact line without its line feed, which every reader of JSON reads: lone surrogates are replaced, and
        what is no finite number becomes text."""
        origin = self.origin
        head = {
            "v": self.v,
            "seq": self.seq,
            "ts": self.ts,
            "mono": round(self.mono, 6),
            "session_id": origin.session_id,
            "run_id": origin.run_id,
            "agent_id": origin.agent_id,
            "parent_call_id": origin.parent_call_id,
            "depth": origin.depth,
            "turn": origin.turn,
            "step": origin.step,
            "type": self.event.type,
            "data": self.event.model_dump(mode="json", exclude={"type"}),
        }
        try:
            line = _JSON.encode(head)
        except ValueError:
            line = _JSON.encode(_finite(head))
        return line.encode("utf-8", "replace").decode("utf-8")


def read_envelope(line: str | bytes) -> Envelope | None:
    """Reads one line; None where its type is not known to this version (readers ignore the unknown).

    Raises:
        ValueError: the line is no JSON object, or a known event with wrong fields.
    """
    record: object = json.loads(line)
    if not is_object(record) or not isinstance(record.get("type"), str):
        raise ValueError("not an event: an object with a `type` was expected")
    if record["type"] not in known_types():
        return None
    data: object = record.get("data")
    fields = {**(data if is_object(data) else {}), "type": record["type"]}
    try:
        event = EVENT_ADAPTER.validate_python(fields)
        place = _Place.model_validate({name: value for name, value in record.items() if value is not None})
    except ValidationError as error:
        raise ValueError(f"event {record['type']} cannot be read: {error}") from error
    origin = Origin(**place.model_dump(exclude={"v", "seq", "ts", "mono"}))
    return Envelope(event, place.seq, place.ts, place.mono, origin, place.v)


def _finite(value: object) -> object:
    """The same JSON value with text for infinities and NaN, which JSON has no word for."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_object(value):
        return {name: _finite(inner) for name, inner in value.items()}
    return [_finite(inner) for inner in value] if is_array(value) else value


class _Place(Word):
    """The fields of a line beside `type` and `data`."""

    v: int = SCHEMA_VERSION
    seq: int = 0
    ts: int = 0
    mono: float = 0.0
    session_id: str = ""
    run_id: str | None = None
    agent_id: str = "main"
    parent_call_id: str | None = None
    depth: int = 0
    turn: int | None = None
    step: int | None = None


def event_classes() -> dict[str, type[AgentEvent]]:
    """Every event class by its type name."""
    union = get_args(AgentEvent)[0]
    return {member.model_fields["type"].default: member for member in get_args(union)}


@cache
def known_types() -> frozenset[str]:
    """The type names this version knows."""
    return frozenset(event_classes())
