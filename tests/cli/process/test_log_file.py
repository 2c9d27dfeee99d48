"""The log: errors always, private to the user, and never on the terminal."""

import logging
import stat
from pathlib import Path

import pytest

from tui_agent.cli.process.log_file import LOG_NAME, log_to_file
from tui_agent.settings import Locations

HEARD = logging.getLogger("test_log_file")


def locations(home: Path) -> Locations:
    return Locations(config_dir=home / "config", state_dir=home / "state")


def test_only_errors_are_written_and_only_when_there_are_any(tmp_path: Path) -> None:
    place = locations(tmp_path).log_dir
    log_to_file(locations(tmp_path), verbose=False)
    HEARD.warning("a word")
    assert not place.exists()

    HEARD.error("a fault")

    text = (place / LOG_NAME).read_text("utf-8")
    assert "a fault" in text
    assert "a word" not in text
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert stat.S_IMODE((place / LOG_NAME).stat().st_mode) == 0o600


def test_a_log_that_cannot_be_created_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").write_text("no directory")
    log_to_file(locations(tmp_path), verbose=False)

    HEARD.error("a fault")

    assert capsys.readouterr() == ("", "")


def test_records_contain_no_terminal_control_characters(tmp_path: Path) -> None:
    log_to_file(locations(tmp_path), verbose=False)
    HEARD.error("cannot read %s", "a\x1b]0;x\x07\u202e\u034f.txt")

    written = (locations(tmp_path).log_dir / LOG_NAME).read_text("utf-8")
    assert written.endswith("cannot read a\\x1b]0;x\\x07\\u202e\\u034f.txt\n")
