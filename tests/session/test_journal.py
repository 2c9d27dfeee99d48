"""The journal file: append-only, one writer, repair of its own failed writes only."""

import os
from pathlib import Path

import pytest

from tests.session.failing_disk import FailingDisk
from tui_agent.protocol.errors import SessionError
from tui_agent.session.journal import JournalFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.jsonl"


def test_a_torn_last_line_is_terminated_before_the_next_append(path: Path) -> None:
    path.write_bytes(b"whole\nto")
    journal = JournalFile(path)
    journal.append(b"new\n", durable=True)
    journal.append(b"newer\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"whole\nto\nnew\nnewer\n"


def test_a_second_writer_is_refused_and_changes_nothing(path: Path) -> None:
    first = JournalFile(path)
    with pytest.raises(SessionError, match="already open in another tui-agent"):
        JournalFile(path)
    first.append(b"mine\n", durable=False)
    first.close()
    JournalFile(path).close()

    assert path.read_bytes() == b"mine\n"


def test_a_file_that_grew_since_it_was_read_is_refused(path: Path) -> None:
    path.write_bytes(b"read\nnot read\n")
    with pytest.raises(SessionError, match="Another program wrote to session"):
        JournalFile(path, expected_size=5)

    JournalFile(path, expected_size=14).close()


def test_only_regular_files_are_journals_and_no_link_is_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionError, match="cannot be opened for writing"):
        JournalFile(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(SessionError, match="is not a regular file"):
        JournalFile(path)


def test_a_failed_removal_of_a_half_written_line_is_retried(path: Path) -> None:
    disk = FailingDisk(room=2)
    journal = JournalFile(path, disk=disk)
    with pytest.raises(OSError, match="No space left"):
        journal.append(b"first\n", durable=False)
    disk.room, disk.cut_fails = None, True
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"first\n", durable=False)

    disk.cut_fails = False
    journal.append(b"first\n", durable=False)
    journal.close()

    assert path.read_bytes() == b"first\n"


def test_after_a_failed_sync_everything_since_the_last_good_one_is_written_again(path: Path) -> None:
    path.write_bytes(b"torn")
    disk = FailingDisk()
    journal = JournalFile(path, disk=disk)
    journal.append(b"a\n", durable=False)
    disk.sync_fails = True
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"b\n", durable=True)
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"b\nc\n", durable=True)

    disk.sync_fails = False
    written: list[int] = []
    disk.before_write = lambda: written.append(path.stat().st_size)
    journal.append(b"b\nc\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"torn\na\nb\nc\n"
    assert written[0] == len(b"torn")


def test_only_durable_lines_wait_for_the_disk(path: Path) -> None:
    disk = FailingDisk()
    journal = JournalFile(path, disk=disk)
    journal.append(b"a\n", durable=False)
    assert disk.syncs == 0
    journal.append(b"b\n", durable=True)
    assert disk.syncs == 1
    journal.close()
    journal.close()


def test_a_file_that_was_removed_is_noticed(path: Path) -> None:
    journal = JournalFile(path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="was removed"):
        journal.append(b"lost\n", durable=False)
    journal.close()


def test_a_file_removed_during_the_open_is_opened_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really_lock, locked = __import__("fcntl").flock, []

    def lock_after_removal(descriptor: int, flags: int) -> None:
        if not locked:
            path.unlink()
        locked.append(descriptor)
        really_lock(descriptor, flags)

    monkeypatch.setattr("fcntl.flock", lock_after_removal)
    journal = JournalFile(path)
    journal.append(b"kept\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"kept\n"
    assert len(locked) == 2


def test_closing_removes_an_own_half_written_line(path: Path) -> None:
    path.write_bytes(b"theirs, torn")
    journal = JournalFile(path, disk=FailingDisk(room=10))
    with pytest.raises(OSError, match="No space left"):
        journal.append(b"first\nsecond\n", durable=False)
    journal.close()

    assert path.read_bytes() == b"theirs, torn\nfirst\n"


def test_closing_keeps_whole_lines_that_may_have_reached_the_disk(path: Path) -> None:
    disk = FailingDisk()
    disk.sync_fails = True
    journal = JournalFile(path, disk=disk)
    with pytest.raises(OSError, match="Input/output"):
        journal.append(b"first\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"first\n"
