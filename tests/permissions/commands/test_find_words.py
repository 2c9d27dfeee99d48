"""`find` with harmless and with other actions."""

import pytest

from tui_agent.permissions.commands.invocation import Reads
from tui_agent.permissions.commands.searches import find_reads, find_roots, finds_only_files, without_exec
from tui_agent.permissions.shell.syntax import UNKNOWN, SimpleCommand


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("find", Reads((), listed=(".",))),
        ("find a b -name x", Reads((), listed=("a", "b"))),
        ("find -P -O3 a ( -name x -o -type d ) -print0", Reads((), listed=("a",))),
        ("find . ! -newer r -newermt 2020-01-01 -printf %p", Reads(("r",), listed=(".",))),
        ("find . -exec rm {} ;", Reads((), listed=(".",))),
        ("find . -type f -exec rm -f {} + -print", Reads((), listed=(".",))),
    ],
)
def test_read_only_searches(text: str, use: Reads) -> None:
    assert find_reads(text.split(" "), SimpleCommand("", ())) == use


@pytest.mark.parametrize(
    "text",
    ["find . -delete", "find . -fprint x", "find . -ok rm {} ;", "find -L .", "find . -follow", "find . -name",
     "find . -unknown", "find . -files0-from x", f"find {UNKNOWN}", f"find . -name {UNKNOWN}", "find . -newerxy a"],
)  # fmt: skip
def test_searches_that_may_do_more(text: str) -> None:
    assert find_reads(text.split(" "), SimpleCommand("", ())) is None


def test_roots_precede_the_first_test() -> None:
    assert find_roots(["find", "-L", "a", "b", "-name", "x"]) == ("a", "b")
    assert find_roots(["find", "-name", "x"]) == (".",)


def test_commands_of_exec_are_not_its_own_words() -> None:
    assert without_exec(["find", ".", "-exec", "a", "+", "b", "{}", "+", "-print"]) == ["find", ".", "-print"]
    assert without_exec(["find", ".", "-exec", "a"]) == ["find", "."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("find . -type f", True), ("find .", False), ("find . -type f -o -name x", False), ("find . ! -type f", False),
     ("find -L . -type f", False)],
)  # fmt: skip
def test_a_search_for_files_without_widening_operators(text: str, expected: bool) -> None:
    assert finds_only_files(text.split(" ")) is expected
