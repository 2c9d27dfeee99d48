import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.protocol_strategies import json_objects
from tui_agent.execution import call_digest
from tui_agent.protocol.messages import JsonObject


@given(json_objects)
def test_the_order_of_keys_and_targets_does_not_matter(arguments: JsonObject) -> None:
    backwards = dict(reversed(list(arguments.items())))

    assert call_digest("t", arguments, ["b", "a"]) == call_digest("t", backwards, ["a", "b"])


@pytest.mark.slow
@given(json_objects, json_objects)
def test_other_arguments_have_another_digest(one: JsonObject, other: JsonObject) -> None:
    same = repr(one) == repr(other)

    if not same and one != other:
        assert call_digest("t", one) != call_digest("t", other)


@given(st.text(st.characters(categories=["Cs"]), min_size=1))
def test_text_with_lone_surrogates_has_a_digest(text: str) -> None:
    assert len(call_digest("t", {"a": text})) == 64


def test_tool_arguments_and_targets_all_count() -> None:
    digests = {
        call_digest("t", {"a": 1}),
        call_digest("u", {"a": 1}),
        call_digest("t", {"a": 2}),
        call_digest("t", {"a": 1}, place="trial"),
        call_digest("t", {"a": 1}, ["x"]),
        call_digest("t", {"a": 1}, ["x", "y"]),
        call_digest("t", {"a": "1"}),
        call_digest("t", {"a": 1}, schema={}),
        call_digest("t", {"a": 1}, schema={"type": "object"}),
    }

    assert len(digests) == 9
