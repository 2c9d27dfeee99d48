"""Paths resolve as the kernel resolves them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.permissions.conftest import Desk
from tui_agent.permissions.rules.path_resolution import MAX_LENGTH, TooMuchError, entries_below, resolve


def test_a_loop_is_not_certain(desk: Desk) -> None:
    (desk.root / "a").symlink_to("b")
    (desk.root / "b").symlink_to("a")
    found = resolve("a/./x", str(desk.root))

    assert not found.is_certain
    assert found.path.endswith("/x")


def test_a_path_that_is_too_long_or_invalid_is_not_followed(desk: Desk) -> None:
    assert not resolve("x/" * MAX_LENGTH, str(desk.root)).is_certain
    assert not resolve("a\x00b/c", str(desk.root)).is_certain
    assert resolve("x" * 300, str(desk.root)).path == f"{desk.root}/{'x' * 300}"


def test_a_way_through_another_process_is_followed_but_not_certain(desk: Desk) -> None:
    (desk.root / "round").symlink_to(f"/proc/self/root{desk.root}/README.md")
    found = resolve("round", str(desk.root))

    assert found.path == str(desk.root / "README.md")
    assert not found.is_certain


names = st.sampled_from(("a", "b", "..", ".", "", "link", "deep", "up"))


@given(st.lists(names, max_size=8))
def test_any_path_resolves_as_the_system_does(tmp_path_factory: pytest.TempPathFactory, parts: list[str]) -> None:
    root = Path(os.path.realpath(tmp_path_factory.getbasetemp())) / "paths"
    if not root.exists():
        (root / "a" / "b").mkdir(parents=True)
        (root / "a" / "link").symlink_to("../b/deep")
        (root / "b" / "deep").mkdir(parents=True)
        (root / "b" / "deep" / "up").symlink_to("../..")
        (root / "link").symlink_to(root / "b")
    path = "/".join(parts)

    assert resolve(path, str(root)).path == os.path.realpath(root / path)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a", "b/c", "b/d/e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path)
    return tmp_path


def test_too_many_entries_are_an_error(place: Path) -> None:
    with pytest.raises(TooMuchError):
        list(entries_below(str(place), 5))
