from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.execution.scheduling.conflict_order import AccessTree, meet
from tui_agent.protocol.tool import Accesses


def accesses(*, reads: str = "", writes: str = "", searches: str = "", keeps: str = "") -> Accesses:
    def paths(text: str) -> frozenset[Path]:
        return frozenset(Path(word) for word in text.split())

    return Accesses(paths(reads), paths(writes), paths(searches), paths(keeps))


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        (accesses(writes="/a"), accesses(writes="/a"), True),
        (accesses(writes="/a"), accesses(reads="/a"), True),
        (accesses(reads="/a"), accesses(reads="/a"), False),
        (accesses(writes="/a"), accesses(writes="/b"), False),
        (accesses(writes="/d/a"), accesses(searches="/d"), True),
        (accesses(writes="/d/e/a"), accesses(searches="/d"), True),
        (accesses(writes="/de/a"), accesses(searches="/d"), False),
        (accesses(searches="/d"), accesses(searches="/d"), False),
        (accesses(searches="/d/e"), accesses(writes="/d"), True),
        (accesses(writes="/d/a"), accesses(writes="/d"), True),
        (accesses(writes="/d/a"), accesses(writes="/d/b"), False),
        (accesses(writes="/d/a"), accesses(searches="/"), True),
        (accesses(), accesses(writes="/a"), False),
        (accesses(keeps="/d"), accesses(keeps="/d"), False),
        (accesses(keeps="/d"), accesses(keeps="/d/e"), False),
        (accesses(keeps="/d"), accesses(reads="/d/a"), True),
        (accesses(keeps="/d"), accesses(writes="/d/a"), True),
        (accesses(keeps="/d"), accesses(searches="/"), True),
        (accesses(keeps="/d"), accesses(reads="/e", writes="/f"), False),
        (accesses(keeps="/d", reads="/d"), accesses(keeps="/d"), True),
    ],
)
def test_conflicting_accesses(one: Accesses, other: Accesses, answer: bool) -> None:
    assert meet(one, other) is answer
    assert meet(other, one) is answer


names = st.lists(st.sampled_from("abc"), max_size=3).map(lambda parts: Path("/" + "/".join(parts)))
sets = st.frozensets(names, max_size=2)
some_accesses = st.builds(Accesses, sets, sets, sets) | st.builds(Accesses, sets, sets, sets, sets)


@pytest.mark.slow
@given(st.lists(st.tuples(some_accesses, st.booleans()), max_size=6), some_accesses)
def test_the_tree_agrees_with_the_definition(earlier: list[tuple[Accesses, bool]], later: Accesses) -> None:
    """A call's conflicts are found directly, or through a call that waits for them and is itself found."""
    tree: AccessTree[int] = AccessTree()
    waits_for: dict[int, set[int]] = {}
    for number, (own, waits) in enumerate(earlier):
        waits_for[number] = closure(set(tree.met_by(own)), waits_for) if waits else set()
        tree.add(number, own, waits=waits)

    found = closure(set(tree.met_by(later)), waits_for)

    expected = {number for number, (own, _) in enumerate(earlier) if meet(own, later)}
    assert expected <= found
    assert set(tree.met_by(later)) <= expected


def closure(found: set[int], waits_for: dict[int, set[int]]) -> set[int]:
    return found.union(*(waits_for[number] for number in found))


def test_many_writes_to_one_path_stay_cheap() -> None:
    tree: AccessTree[int] = AccessTree()
    for number in range(100):
        met = list(tree.met_by(accesses(writes="/a")))
        tree.add(number, accesses(writes="/a"), waits=True)
        assert met == ([number - 1] if number else [])
