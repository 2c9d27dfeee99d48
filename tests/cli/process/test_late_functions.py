"""Functions of dataclasses that are compiled when they are first called."""

from collections.abc import Iterator
from dataclasses import FrozenInstanceError, dataclass
from inspect import signature

import pytest

from tui_agent.cli.process.process_setup import compile_at_once, compile_late


@pytest.fixture(autouse=True)
def _late() -> Iterator[None]:
    compile_late()
    yield
    compile_at_once()


def test_a_class_behaves_as_if_all_its_functions_had_been_compiled_at_once() -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int = 2

    @dataclass(frozen=True, slots=True)
    class Named(Point):
        name: str = "a"

    for _ in range(2):
        assert (Point(1) == Point(1, 2), Point(1) == Point(2), Point(1) == 1) == (True, False, False)
        assert {Point(1), Point(1)} == {Point(1)}
        assert hash(Named(1)) == hash((1, 2, "a"))
        assert repr(Named(1)).endswith("Named(x=1, y=2, name='a')")
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
            Named(1).__setattr__("x", 2)
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'y'"):
            Point(1).__delattr__("y")
    assert Named(1, name="b") == Named(1, 2, "b")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Named(name="a")  # pyright: ignore[reportCallIssue]
    assert str(signature(Point)).startswith("(x: ")
    assert Point.__eq__.__qualname__.endswith("Point.__eq__")
