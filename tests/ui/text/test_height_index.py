"""Stacked heights: results equal those of adding them up."""

from bisect import bisect_right
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.ui.text.height_index import SPAN, HeightIndex

heights = st.lists(st.integers(0, 5), max_size=12)
changes = st.lists(
    st.tuples(
        st.sampled_from(["append", "insert", "remove", "set", "cut", "look"]), st.integers(0, 12), st.integers(0, 5)
    ),
    max_size=20,
)


@given(heights, changes)
def test_an_index_is_a_list_of_heights_with_sums(start: list[int], steps: list[tuple[str, int, int]]) -> None:
    index, expected = HeightIndex(start), list(start)

    for step, place, height in steps:
        inside = place % len(expected) if expected else 0
        if step == "append":
            index.append(height)
            expected.append(height)
        elif step == "insert":
            index.insert(inside, height)
            expected.insert(inside, height)
        elif step == "remove" and expected:
            index.remove(inside)
            del expected[inside]
        elif step == "set" and expected:
            assert index.set(inside, height) == (expected[inside] != height)
            expected[inside] = height
        elif step == "cut":
            index.cut(place)
            del expected[place:]
        else:
            assert index.total == sum(expected)

    assert len(index) == len(expected)
    assert index.total == sum(expected)
    assert [index.start(place) for place in range(len(expected) + 1)] == [
        sum(expected[:place]) for place in range(len(expected) + 1)
    ]
    assert [index.height(place) for place in range(len(expected))] == expected
    owners = [place for place, height in enumerate(expected) for _ in range(height)]
    assert [index.find(row) for row in range(len(owners))] == owners
    assert index.find(len(owners)) == len(expected)
    assert index.find(-3) == (owners[0] if owners else len(expected))


@given(st.integers(0, 5 * SPAN), st.lists(st.tuples(st.integers(0, 5 * SPAN), st.integers(0, 3)), max_size=12))
def test_many_heights_are_a_list_with_sums_too(count: int, steps: list[tuple[int, int]]) -> None:
    index, expected = HeightIndex(place % 3 for place in range(count)), [place % 3 for place in range(count)]
    for place, height in steps:
        inside = min(place, len(expected))
        for _ in range(SPAN // 2):
            index.insert(inside, height)
        expected[inside:inside] = [height] * (SPAN // 2)
        index.set(inside, height + 1)
        expected[inside] = height + 1
        index.remove(min(place // 2, inside))
        del expected[min(place // 2, inside)]
        if height == 3:
            index.cut(2 * place)
            del expected[2 * place :]

    ends = list(accumulate(expected))

    assert (len(index), index.total) == (len(expected), sum(expected))
    assert [index.start(place) for place in range(len(expected) + 1)] == [0, *ends]
    assert [index.find(row) for row in range(0, sum(expected) + 2, 7)] == [
        bisect_right(ends, row) for row in range(0, sum(expected) + 2, 7)
    ]
