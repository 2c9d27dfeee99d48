from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.execution.options import Grouping
from tui_agent.execution.scheduling.conflict_order import AccessTree, ConflictOrder, OrderEntry, conflict, meet
from tui_agent.protocol.tool import Accesses


def accesses(*, reads: str = "", writes: str = "", searches: str = "", keeps: str = "") -> Accesses:
    def paths(text: str) -> frozenset[Path]:
        return frozenset(Path(word) for word in text.split())

    return Accesses(paths(reads), paths(writes), paths(searches), paths(keeps))


names = st.lists(st.sampled_from("abc"), max_size=3).map(lambda parts: Path("/" + "/".join(parts)))
sets = st.frozensets(names, max_size=2)
some_accesses = st.builds(Accesses, sets, sets, sets) | st.builds(Accesses, sets, sets, sets, sets)


@dataclass(eq=False)
class FakeCall:
    """Minimal call for ordering."""

    index: int = 0
    safe: bool = False
    alone: bool = False
    has_turn: bool = False
    paths: Accesses | None = None
    asked: int = 0

    def accesses(self) -> Accesses | None:
        self.asked += 1
        return self.paths


def read(path: str) -> FakeCall:
    return FakeCall(safe=True, paths=accesses(reads=path))


def search(path: str) -> FakeCall:
    return FakeCall(safe=True, paths=accesses(searches=path))


def write(path: str) -> FakeCall:
    return FakeCall(paths=accesses(writes=path))


def fetch() -> FakeCall:
    return FakeCall(safe=True)


def shell() -> FakeCall:
    return FakeCall()


def lone() -> FakeCall:
    return FakeCall(safe=True, alone=True, paths=Accesses())


def ordered(
    *calls: FakeCall, grouping: Grouping = "conflicts", settle: bool = True
) -> tuple[ConflictOrder, list[OrderEntry]]:
    order = ConflictOrder(grouping)
    places: list[OrderEntry] = []
    for index, call in enumerate(calls):
        call.index = index
        place = order.add(call)
        places.append(place)
        if settle:
            order.settle(place)
    order.close()
    return order, places


def free(places: list[OrderEntry]) -> list[int]:
    return [place.call.index for place in places if place.is_free and not place.done]


@pytest.mark.parametrize(
    ("calls", "at_once"),
    [
        ([read("/a"), read("/a"), search("/")], [0, 1, 2]),
        ([write("/a"), write("/b")], [0, 1]),
        ([write("/a"), write("/a")], [0]),
        ([write("/a"), read("/a"), read("/b")], [0, 2]),
        ([read("/a"), write("/a"), read("/a")], [0]),
        ([search("/d"), write("/d/x"), write("/e")], [0, 2]),
        ([shell(), read("/a"), write("/b")], [0]),
        ([read("/a"), shell(), read("/a")], [0]),
        ([fetch(), fetch(), write("/a")], [0, 1]),
        ([write("/a"), fetch(), read("/b")], [0, 2]),
        ([read("/a"), lone(), read("/b")], [0]),
        ([FakeCall(paths=Accesses()), write("/a")], [0, 1]),
    ],
)
def test_calls_that_may_run_concurrently(calls: list[FakeCall], at_once: list[int]) -> None:
    _, places = ordered(*calls)

    assert free(places) == at_once


def test_no_call_starts_before_the_arguments_of_all_earlier_calls_are_known() -> None:
    order, places = ordered(read("/a"), read("/b"), settle=False)

    order.settle(places[1])
    assert free(places) == []
    assert order.blockers(places[1]) == (0,)
    order.settle(places[0])
    order.settle(places[0])
    assert free(places) == [0, 1]


def test_changed_arguments_wait_for_earlier_calls_and_block_later_ones() -> None:
    changed = write("/x")
    order, places = ordered(write("/a"), changed, write("/b"), write("/c"))
    assert free(places) == [0, 1, 2, 3]

    changed.paths = accesses(writes="/a /b")
    order.change(places[1])
    assert order.blockers(places[1]) == (0,)
    assert order.blockers(places[2]) == (1,)
    assert free(places) == [0, 3]


def test_arguments_changed_to_unknown_targets_block_all_later_calls() -> None:
    changed = write("/x")
    order, places = ordered(changed, read("/a"), settle=False)
    order.change(places[0])
    order.settle(places[0])
    order.settle(places[1])

    changed.paths = None
    order.change(places[0])
    late = FakeCall(index=2, safe=True)
    place = order.add(late)
    order.settle(place)

    assert order.blockers(places[1]) == (0,)
    assert order.blockers(place) == (0,)
    order.leave(places[0])
    assert free([*places, place]) == [1, 2]


@pytest.mark.parametrize(("first", "later"), [(read, write), (write, write), (write, read)])
def test_a_call_that_outlives_a_barrier_by_change_still_precedes_its_conflicts(
    first: Callable[[str], FakeCall], later: Callable[[str], FakeCall]
) -> None:
    changed = write("/x")
    order, places = ordered(first("/a"), changed, later("/a"), read("/b"), settle=False)
    order.settle(places[0])
    order.settle(places[1])
    assert free(places) == [0, 1]

    changed.paths = None
    order.change(places[1])
    order.settle(places[2])
    order.settle(places[3])
    order.leave(places[1])

    assert order.blockers(places[2]) == (0,)
    assert free(places) == [0, 3]


some_calls = st.builds(
    FakeCall,
    safe=st.booleans(),
    alone=st.sampled_from([False] * 5 + [True]),
    paths=st.none() | some_accesses,
)


def must_wait_for(calls: list[FakeCall], later: int, grouping: Grouping) -> set[int]:
    """Return the calls that precede `later` and conflict with it, by definition."""

    def blind(call: FakeCall) -> FakeCall:
        return call if grouping == "conflicts" else FakeCall(call.index, call.safe, call.alone)

    def rank(call: FakeCall) -> tuple[bool, int]:
        return (grouping == "safe_first" and not call.safe, call.index)

    me = calls[later]
    return {call.index for call in calls if rank(call) < rank(me) and conflict(blind(call), blind(me))}


@given(
    st.lists(some_calls, max_size=8),
    st.sampled_from(["conflicts", "consecutive", "safe_first"]),
    st.randoms(use_true_random=False),
)
def test_a_call_is_free_exactly_when_no_conflicting_call_is_left(
    calls: list[FakeCall], grouping: Grouping, random: Random
) -> None:
    order, places = ordered(*calls, grouping=grouping)
    left = set(range(len(calls)))

    while left:
        expected = [index for index in sorted(left) if not must_wait_for(calls, index, grouping) & left]
        assert free(places) == expected
        assert expected, "a deadlock"
        # A call also leaves before its turn, if it is denied or skipped.
        done = random.choice(expected if random.random() < 0.5 else sorted(left))
        order.leave(places[done])
        left.discard(done)


def test_a_call_that_comes_after_a_denied_one_waits_for_the_calls_before_that() -> None:
    order, places = ordered(write("/a"), write("/a"))
    order.leave(places[1])
    order.leave(places[1])
    late = order.add(FakeCall(index=2, paths=accesses(writes="/a")))
    order.settle(late)

    assert order.blockers(late) == (0,)


def test_a_thousand_calls_are_ordered_without_comparing_all_pairs() -> None:
    calls = [write(f"/d/{number}") if number % 2 else read(f"/d/{number}") for number in range(1000)]

    _, places = ordered(*calls)

    assert len(free(places)) == 1000
    assert max(call.asked for call in calls) <= 3
    assert Path("/d/1") in (calls[1].paths or Accesses()).writes


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
