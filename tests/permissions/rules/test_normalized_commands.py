"""Texts of a command that rules are compared with."""

import pytest

from tests.permissions.conftest import parsed_command
from tui_agent.permissions.rules.patterns import BORDER
from tui_agent.permissions.rules.rule_set import normalize_command
from tui_agent.permissions.shell.syntax import UNKNOWN


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
    view = normalize_command(parsed_command(text))

    assert view.words.replace(BORDER, " ") == words
    assert [one.replace(BORDER, " ") for one in view.normalized_forms] == normalized_forms


def test_assignments_are_part_of_one_view() -> None:
    view = normalize_command(parsed_command("A=1 B='x y' make"))

    assert view.with_assignments == BORDER.join(("A=1", "B=x y", "make"))
    assert normalize_command(parsed_command("A=1")).words == ""
