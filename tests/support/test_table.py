"""A table tries every row and reports each one that failed; a room over its budget is named."""

import pytest

from tests.support.cpu_time import overdrawn, room_of
from tests.support.table import table


def test_every_row_is_tried_and_each_failure_shown() -> None:
    tried: list[int] = []

    @table("number", [1, 2, 3])
    def check(number: int) -> None:
        tried.append(number)
        assert number == 2, "not two"

    with pytest.raises(
        pytest.fail.Exception, match=r"2 of 3 rows failed\n(?s:.*)row 0: 1\n(?s:.*)row 2: 3\n"
    ) as failed:
        check()

    assert str(failed.value).count("AssertionError: not two") == 2
    assert tried == [1, 2, 3]


def test_a_room_over_its_budget_or_without_one_is_named() -> None:
    used = {room_of("tests/ui/text/test_a.py"): 3.0, room_of("tests/test_b.py"): 1.0, "agent": 2.0, "new": 0.1}

    assert overdrawn(used, {"ui": 2.5, ".": 1.0, "agent": 2.0}) == ["new", "ui"]
