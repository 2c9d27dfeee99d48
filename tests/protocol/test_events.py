"""Events, their fields and codes are frozen, survive JSON, and readers ignore unknown fields and types."""

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tui_agent
from tests.support.protocol_strategies import of_model
from tests.support.table import table
from tui_agent.protocol.envelope import Envelope, Origin, event_classes, read_envelope
from tui_agent.protocol.events import MessageDelta, Noticed, StepEnded, ToolEnded
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.reports import Metric

FROZEN = Path(__file__).with_name("frozen_events.txt")

origins = st.builds(
    Origin,
    session_id=st.text(),
    run_id=st.none() | st.text(),
    agent_id=st.text(min_size=1),
    parent_call_id=st.none() | st.text(),
    depth=st.integers(0, 9),
    turn=st.none() | st.integers(0, 99),
    step=st.none() | st.integers(0, 99),
)


NOWHERE = Origin()


def envelope_of(event: object, origin: Origin = NOWHERE) -> Envelope:
    return Envelope(event, seq=1, ts=2, mono=3.0, origin=origin)


def test_type_names_and_fields_are_frozen() -> None:
    """Add new events and fields to the file deliberately; a removed one breaks existing journals."""
    lines = [
        f"{name}: {', '.join(field for field in cls.model_fields if field != 'type')}"
        for name, cls in sorted(event_classes().items())
    ]

    assert lines == FROZEN.read_text("utf-8").splitlines()


@table("name", sorted(event_classes()))
def test_every_event_survives_a_round_trip_through_json(name: str) -> None:
    @settings(max_examples=15)
    @given(of_model(event_classes()[name]), origins)
    def survives(event: object, origin: Origin) -> None:
        envelope = envelope_of(event, origin)
        line = envelope.to_json()

        assert "\n" not in line
        assert read_envelope(line) == envelope
        assert json.loads(line)["type"] == name

    survives()


def test_the_envelope_has_the_fields_of_the_contract() -> None:
    record = json.loads(envelope_of(Noticed(code="x", text="y")).to_json())

    assert list(record) == [
        "v", "seq", "ts", "mono", "session_id", "run_id", "agent_id", "parent_call_id", "depth", "turn", "step", "type",
        "data",
    ]  # fmt: skip
    assert record["data"] == {"code": "x", "text": "y", "context": {}}


def test_readers_ignore_unknown_fields_and_types() -> None:
    record = json.loads(envelope_of(Noticed(code="x", text="y")).to_json())
    record["data"]["later"] = 1
    record["later"] = 2

    assert read_envelope(json.dumps(record)) == envelope_of(Noticed(code="x", text="y"))
    assert read_envelope('{"v":9,"seq":1,"type":"later.invented","data":{}}') is None


@table(
    "line",
    [
        "",
        "null",
        "[]",
        "7",
        '{"data":{}}',
        '{"type":7}',
        '{"type":"message.delta","data":{}}',
        "{",
        '{"type":"notice"}',
    ],
)
def test_a_line_that_is_not_an_event_is_refused_with_a_reason(line: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_envelope(line)


def test_a_lone_surrogate_becomes_valid_utf8() -> None:
    line = envelope_of(MessageDelta(message_id="m", kind="text", delta="a\ud800b")).to_json()

    assert line.encode("utf-8")
    assert read_envelope(line) is not None


@table("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_express_becomes_text_and_reads_back(number: float) -> None:
    """No float of any event makes an invalid line of JSON, and the publisher gets no error."""
    ended = StepEnded(index=0, kind="initial", llm_ms=number, finish_reason="end_turn", usage=Usage())
    measured = ToolEnded(
        call_id="c", name="act", index=0, status="ok", is_error=False, content=(), metrics={"x": Metric(value=number)}
    )

    for event in (ended, measured):
        line = envelope_of(event).to_json()

        assert json.loads(line, parse_constant=pytest.fail)["type"] == event.type
        assert read_envelope(line) is not None
    back = read_envelope(envelope_of(ended).to_json())
    assert back is not None
    assert str(back.event.llm_ms) == str(number)


FROZEN_CODES = Path(__file__).with_name("frozen_codes.txt")
KINDS = {"Warned": "warning", "Failed": "error", "Noticed": "notice"}


def package() -> list[ast.Module]:
    return [ast.parse(path.read_text("utf-8")) for path in sorted(Path(tui_agent.__path__[0]).rglob("*.py"))]


def constants(modules: list[ast.Module]) -> dict[str, str]:
    """Return the module-level string constants."""
    found: dict[str, str] = {}
    for module in modules:
        for statement in module.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    found[name] = text
                case _:
                    pass
    return found


def told_codes() -> set[str]:
    """Return `kind code` for each such event made in the package; each must name its code literally."""
    modules = package()
    named, codes = constants(modules), set[str]()
    for call in (node for module in modules for node in ast.walk(module) if isinstance(node, ast.Call)):
        kind = KINDS.get(call.func.id) if isinstance(call.func, ast.Name) else None
        for keyword in call.keywords if kind else ():
            match keyword:
                case ast.keyword(arg="code", value=ast.Constant(value=str(text))):
                    codes.add(f"{kind} {text}")
                case ast.keyword(arg="code", value=ast.Name(id=name)):
                    codes.add(f"{kind} {named[name]}")
                case ast.keyword(arg="code"):
                    codes.add(f"{kind} ?")
                case _:
                    pass
    return codes


@pytest.mark.slow
def test_codes_are_frozen() -> None:
    """Add new codes to the file deliberately; a removed code breaks clients."""
    assert sorted(told_codes()) == FROZEN_CODES.read_text("utf-8").splitlines()
