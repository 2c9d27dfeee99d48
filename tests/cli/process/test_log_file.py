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


def test_a_log_that_cannot_be_created_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").write_text("no directory")
    log_to_file(locations(tmp_path), verbose=False)

    HEARD.error("a fault")

    assert capsys.readouterr() == ("", "")


def test_only_errors_are_written_into_a_private_file_without_control_characters(tmp_path: Path) -> None:
    place = locations(tmp_path).log_dir
    log_to_file(locations(tmp_path), verbose=False)
    HEARD.warning("a word")
    assert not place.exists()

    HEARD.error("cannot read %s", "a\x1b]0;x\x07\u202e\u034f.txt")

    assert [stat.S_IMODE(one.stat().st_mode) for one in (place, place / LOG_NAME)] == [0o700, 0o600]
    written = (place / LOG_NAME).read_text("utf-8")
    assert "a word" not in written
    assert written.endswith("cannot read a\\x1b]0;x\\x07\\u202e\\u034f.txt\n")
