"""Texts of a command that rules are compared with."""

import pytest

from tui_agent.permissions.rules.normalized_argv import (
    is_script_variable,
    normalize_command,
    sets_only_harmless,
    without_expansion,
)
from tui_agent.permissions.rules.patterns import BORDER
from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import UNKNOWN, Sequence, SimpleCommand


def command(text: str) -> SimpleCommand:
    statement = read_script(text)
    assert isinstance(statement, Sequence)
    (found,) = statement.parts
    assert isinstance(found, SimpleCommand)
    return found


@pytest.mark.parametrize(
    ("text", "words", "normalized_forms"),
    [
        ("rm -rf x", "rm -rf x", []),
        ("'r'm \"x\"", "rm x", []),
        ("/bin/rm x", "/bin/rm x", ["rm x"]),
        ("git -C a -c b=c --no-pager push", "git -C a -c b=c --no-pager push", ["git push"]),
        ("/usr/bin/git push", "/usr/bin/git push", ["git push"]),
        ("r? x", f"{UNKNOWN} x", []),
    ],
)
def test_a_command_as_written_and_in_equivalent_forms(text: str, words: str, normalized_forms: list[str]) -> None:
    view = normalize_command(command(text))

    assert view.words.replace(BORDER, " ") == words
    assert [one.replace(BORDER, " ") for one in view.normalized_forms] == normalized_forms


def test_assignments_are_part_of_one_view() -> None:
    view = normalize_command(command("A=1 B='x y' make"))

    assert view.with_assignments == BORDER.join(("A=1", "B=x y", "make"))
    assert normalize_command(command("A=1")).words == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LANG=C ls", True), ("LC_ALL=C.UTF-8 TZ=UTC ls", True), ("ls", True), ("PATH=x ls", False),
        ("LANG=$X ls", False),
        ("LANG+=x ls", False), ("LANG=~ ls", False), ("LANG='a/b' ls", False), ("LC_all=C ls", False),
        ("LD_PRELOAD=x ls", False), ("GIT_PAGER=x git log", False),
    ],
)  # fmt: skip
def test_assignments_that_change_only_the_display(text: str, expected: bool) -> None:
    assert sets_only_harmless(command(text).assignments) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("file", True), ("f2", True), ("http_proxy", False), ("PATH", False), ("a[0]", False), ("", False)],
)
def test_variables_of_the_scripts_own(name: str, expected: bool) -> None:
    assert is_script_variable(name) is expected


def test_nothing_is_expanded_inside_a_condition() -> None:
    (word,) = command("*{a,b}").words

    assert word.live
    assert not without_expansion(word).live
