import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.protocol_strategies import json_objects
from tui_agent.execution import call_digest
from tui_agent.execution.approval_binding import replaced_paths, with_identities, without_paths
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


@given(st.text(st.characters(categories=["Cs"]), min_size=1))
def test_text_with_lone_surrogates_has_a_digest(text: str) -> None:
    assert len(call_digest("t", {"a": text})) == 64


def test_a_missing_target_is_identified_by_the_nearest_directory(tmp_path: Path) -> None:
    (target,) = with_identities([str(tmp_path / "x" / "y" / "z")])

    assert [place for place, _, _ in target.identities] == [str(tmp_path)]


def test_the_root_and_invalid_paths_can_be_identified() -> None:
    root, nothing = with_identities(["/", "a\0b"])

    assert [place for place, _, _ in root.identities] == ["/"]
    assert nothing.identities == ()


def test_a_target_counts_as_the_same_whatever_its_spelling(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    targets = with_identities([str(tmp_path / "a"), str(tmp_path / "new" / "b")])

    (tmp_path / "a").write_text("new")
    (tmp_path / "new").mkdir()

    assert replaced_paths(targets) == []


def test_another_file_and_a_missing_one_are_detected(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    targets = with_identities([str(tmp_path / "a"), str(tmp_path / "b")])

    os.replace(tmp_path / "c", tmp_path / "a")
    (tmp_path / "b").unlink()

    assert replaced_paths(targets) == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert replaced_paths(without_paths(targets, [str(tmp_path / "a")])) == [str(tmp_path / "b")]
