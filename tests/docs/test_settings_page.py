"""`docs/settings.md` names every setting, and when a change takes effect."""

from pathlib import Path

from tui_agent.settings import key_names, never_from_project, only_at_start

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def rows() -> dict[str, str]:
    """Return the rows of the table by setting."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    return {name.strip(" `"): line for line in lines for name in line.split("|")[1].split(",")}


def test_every_setting_is_listed() -> None:
    assert set(rows()) == set(key_names())


def test_settings_that_need_a_restart_or_that_projects_may_not_set_are_marked() -> None:
    assert {name for name, row in rows().items() if "from the next start" in row} == set(only_at_start())
    assert {name for name, row in rows().items() if "Never from a project" in row} == set(never_from_project())
