"""The content of the first page, from the folder and the store of sessions."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.ui.app.saved_sessions import save
from tests.workbench.configuration.test_live_settings import options_for
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.session.journal import JournalFile
from tui_agent.settings import Locations
from tui_agent.workbench.sessions.session_launch import first_page, is_first_run, keep_theme, starters_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty working directory."""
    path = tmp_path / "work"
    path.mkdir()
    return path


def test_the_last_three_sessions_of_the_folder_are_offered_without_open_ones(
    locations: Locations, folder: Path, tmp_path: Path
) -> None:
    for number in range(5):
        save(locations.sessions_dir, f"s{number}", folder, f"prompt {number}", minutes=10 - number)
    save(locations.sessions_dir, "other", tmp_path, "elsewhere", minutes=1)
    journal = JournalFile(locations.sessions_dir / "s4.jsonl")
    try:
        page = first_page(replace(options_for(folder), demo=False), locations, first_run=False)
    finally:
        journal.close()

    assert {offer.session_id for offer in page.sessions} <= {"s0", "s1", "s2", "s3"}
    assert len(page.sessions) == 3
    assert page.sessions[0].title.startswith("prompt ")


def test_without_any_files_the_page_is_that_of_a_first_run(locations: Locations, folder: Path) -> None:
    assert is_first_run(locations)
    page = first_page(options_for(folder), locations, first_run=True)
    assert page.sessions == ()
    assert page.is_first_run
    assert page.key

    save(locations.sessions_dir, "one", folder, "prompt")
    assert not is_first_run(locations)


def test_starters_fit_the_folder(folder: Path) -> None:
    assert "set up a new project for …" in starters_for(folder)
    (folder / "main.py").write_text("")
    assert starters_for(folder)[0] == "explain this project"
    assert "run the tests and fix what fails" not in starters_for(folder)
    (folder / "pyproject.toml").write_text("")
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    assert starters_for(folder) == (
        "explain this project",
        "run the tests and fix what fails",
        "review my uncommitted changes",
    )
    assert len(starters_for(folder / "missing")) == 3


def test_a_theme_is_written_only_where_no_settings_exist(locations: Locations) -> None:
    path = Path(keep_theme("light", locations.user_file, ""))
    assert path.read_text() == '[ui]\ntheme = "light"\n'
    keep_theme("ansi", locations.user_file, "light")
    assert path.read_text() == '[ui]\ntheme = "ansi"\n'

    path.write_text('model = "mine"\n')
    with pytest.raises(ConfigurationError, match="exists; write the theme there"):
        keep_theme("light", locations.user_file, "ansi")
    assert path.read_text() == 'model = "mine"\n'
