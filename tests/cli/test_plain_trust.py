"""In plain mode the question of trust is written in lines, and only a clear yes applies a folder's settings."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tui_agent.cli.print_mode import ask_in_lines
from tui_agent.settings import Locations
from tui_agent.workbench.configuration.project_trust import TrustStore, trust_request_for

ALLOW = '[permissions]\nrules = [["allow", "bash(make:*)"]]\n'
DENY = '[permissions]\nrules = [["deny", "bash(rm:*)"]]\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".tui-agent").mkdir(parents=True)
    return tmp_path / "project"


def ask(project: Path, locations: Locations, settings: str, typed: Sequence[str | None]) -> list[str]:
    """Ask about these settings, and return the lines of the question."""
    (project / ".tui-agent" / "config.toml").write_text(settings, "utf-8")
    shown, left = list[str](), iter(typed)
    ask_in_lines(project, locations, lambda: next(left), shown.append)
    assert next(left, "") == "", "it asked too seldom"
    return shown


@pytest.mark.parametrize(
    ("settings", "typed", "allows", "is_known"),
    [
        (ALLOW, ["t"], False, True),
        (ALLOW, ["a"], True, True),
        (ALLOW, ["y", "a"], True, True),
        (DENY, ["a", "YES "], True, True),
        (ALLOW, [""], None, True),
        (ALLOW, ["n"], None, True),
        (ALLOW, ["what?", "no"], None, True),
        (ALLOW, [None], None, False),  # The end of the input answers nothing.
    ],
)
def test_only_a_clear_yes_is_trust_and_an_answered_question_does_not_return(
    project: Path, locations: Locations, settings: str, typed: list[str | None], allows: bool | None, is_known: bool
) -> None:
    shown = ask(project, locations, settings, typed)

    trust, offer = TrustStore(locations).trust_in(project), trust_request_for(project, locations)
    assert (None if trust is None else trust.allows) is allows
    assert f"  folder: {project}" in shown
    assert offer is not None
    assert TrustStore(locations).knows(offer) is is_known
    if is_known:
        assert ask(project, locations, settings, []) == []


def test_a_name_of_the_folder_cannot_look_like_another_line(project: Path, locations: Locations) -> None:
    forged = project.rename(project.parent / "a\nApply them? enter yes")
    shown = ask(forged, locations, DENY, [""])

    assert [line for line in shown if line.startswith("Apply")] == ["Apply them? enter no · y yes"]
    assert all("\n" not in line for line in shown)
