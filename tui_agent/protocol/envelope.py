"""Envelope of an event: origin, number and time, and its form on disk and on the wire (one JSON object a line)."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Annotated, Any, get_args

from pydantic import Field, TypeAdapter, ValidationError, create_model

from .events import SCHEMA_VERSION, AgentEvent
from .messages import FrozenModel, is_array, is_object

LATEST_TIME = 253_370_764_800_000
"""Milliseconds since the epoch: the year 9999, the last one that `datetime` supports."""

_LAST_NUMBER = 2**53
"""The largest integer that every JSON reader represents exactly."""

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of an event: session, run, agent, turn and step."""

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
    """One event with its origin, its number in the session and its time."""

    event: AgentEvent
    seq: int
    """Strictly increasing within a session."""
    ts: int
    """Milliseconds since the epoch."""
    mono: float
    """Seconds on the monotonic clock of the process that published it."""
    origin: Origin
    v: int = SCHEMA_VERSION

    @property
    def type(self) -> str:
        """The event's type name."""
        return self.event.type

    def with_event(self, event: AgentEvent) -> "Envelope":
        """Return the envelope around another event; used when neighbours are merged."""
        return replace(self, event=event)

    def to_json(self) -> str:
        """Return one compact line of valid JSON without line feed. Lone surrogates are replaced, and infinities and NaN
        become text."""
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
        # Neither a file nor a pipe takes half a surrogate pair.
        return line.encode("utf-8", "replace").decode("utf-8")


def read_envelope(line: str | bytes) -> Envelope | None:
    """Read one line; None if its type is unknown to this version.

    Raises:
        ValueError: the line is not a JSON object, or is a known event with wrong fields.
    """
    try:
        record = _line_reader()(line)
    except ValidationError as error:
        if _is_of_later_version(error):
            return None
        raise ValueError(_what_is_wrong(error)) from error
    origin = _origin(
        record.session_id,
        record.run_id,
        record.agent_id or "main",
        record.parent_call_id,
        record.depth or 0,
        record.turn,
        record.step,
    )
    seq = record.seq if 0 <= (record.seq or 0) <= _LAST_NUMBER else 0
    # A later time would raise wherever it is shown as a date.
    time = min(max(record.ts or 0, 0), LATEST_TIME)
    return Envelope(record.data, seq or 0, time, record.mono or 0.0, origin, record.v or 1)


def _is_of_later_version(error: ValidationError) -> bool:
    """True if a line failed because its type is unknown."""
    fault = error.errors(include_url=False)[0]
    record: object = fault["input"]
    return fault["type"] == "union_tag_invalid" and is_object(record) and isinstance(record.get("type"), str)


def _what_is_wrong(error: ValidationError) -> str:
    """Return the reason why a line is not a valid event of this version."""
    fault = error.errors(include_url=False, include_input=False)[0]
    match fault["type"]:
        case "json_invalid":
            return fault["msg"]
        case "dict_type" | "union_tag_not_found" | "union_tag_invalid":
            return "not an event: expected an object with a `type`"
        case _:
            kind, *place = (str(part) for part in fault["loc"])
            return f"event {kind} cannot be read: {'.'.join(place)}: {fault['msg']}"


def _finite(value: object) -> object:
    """Return the JSON value with text in place of infinities and NaN, which JSON cannot express."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_object(value):
        return {name: _finite(inner) for name, inner in value.items()}
    return [_finite(inner) for inner in value] if is_array(value) else value


@lru_cache(maxsize=64)
def _origin(*fields: Any) -> Origin:
    """Return the same object for equal fields: neighbouring lines share their origin."""
    return Origin(*fields)


class _Line(FrozenModel):
    """A line of a file; another version may have written it without some fields."""

    v: int | None = SCHEMA_VERSION
    seq: int | None = 0
    ts: int | None = 0
    mono: float | None = 0.0
    session_id: str | None = ""
    run_id: str | None = None
    agent_id: str | None = "main"
    parent_call_id: str | None = None
    depth: int | None = 0
    turn: int | None = None
    step: int | None = None
    data: Any


@cache
def _line_reader() -> Callable[[str | bytes], Any]:
    """Return a validator that reads a line and its event in one pass: a journal may have a hundred thousand lines."""
    any_line: Any = None
    for event in event_classes().values():
        fields: dict[str, Any] = {"type": (event.model_fields["type"].annotation, ...), "data": (event, ...)}
        line: Any = create_model(f"_{event.__name__}Line", __base__=_Line, **fields)
        any_line = line if any_line is None else any_line | line
    by_type: Any = Annotated[any_line, Field(discriminator="type")]
    return TypeAdapter[Any](by_type).validator.validate_json


def event_classes() -> dict[str, type[AgentEvent]]:
    """Return every event class by its type name."""
    union = get_args(AgentEvent)[0]
    return {member.model_fields["type"].default: member for member in get_args(union)}
