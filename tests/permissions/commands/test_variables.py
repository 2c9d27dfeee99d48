"""Variables that a script may set without affecting a program."""

import pytest

from tests.permissions.conftest import parsed_command
from tui_agent.permissions.commands.builtins import is_script_variable, sets_only_harmless
from tui_agent.permissions.shell.expansion import without_expansion


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
    assert sets_only_harmless(parsed_command(text).assignments) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("file", True), ("f2", True), ("http_proxy", False), ("PATH", False), ("a[0]", False), ("", False)],
)
def test_variables_of_the_scripts_own(name: str, expected: bool) -> None:
    assert is_script_variable(name) is expected


def test_nothing_is_expanded_inside_a_condition() -> None:
    (word,) = parsed_command("*{a,b}").words

    assert word.live
    assert not without_expansion(word).live
