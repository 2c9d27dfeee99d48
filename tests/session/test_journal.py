"""The journal file: append-only, one writer, repair of its own failed writes only."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session.failing_disk import FailingDisk
from tui_agent.protocol.errors import SessionError
from tui_agent.session.journal import JournalFile, with_journal_lock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "one.jsonl"


def test_lines_are_appended_to_existing_content(path: Path) -> None:
    path.write_bytes(b"old\n")
    journal = JournalFile(path)
    journal.append(b"new\n", durable=False)
    journal.append(b"newer\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"old\nnew\nnewer\n"
    assert journal.size == len(b"old\nnew\nnewer\n")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_file_is_private_under_any_umask(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        JournalFile(path).close()
    finally:
        os.umask(before)

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_with_a_wider_mode_is_made_private(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0o644)
    JournalFile(path).close()

    assert path.stat().st_mode & 0o777 == 0o600


def test_a_torn_last_line_is_terminated_before_the_next_append(path: Path) -> None:
    path.write_bytes(b"whole\nto")
    journal = JournalFile(path)
    journal.append(b"new\n", durable=True)
    journal.append(b"newer\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"whole\nto\nnew\nnewer\n"


def test_a_torn_last_line_stays_if_nothing_is_appended(path: Path) -> None:
    path.write_bytes(b"whole\nto")
    JournalFile(path).close()

    assert path.read_bytes() == b"whole\nto"


def test_a_second_writer_is_refused_and_changes_nothing(path: Path) -> None:
    first = JournalFile(path)
    with pytest.raises(SessionError, match="already open in another tui-agent"):
        JournalFile(path)
    first.append(b"mine\n", durable=False)
    first.close()
    JournalFile(path).close()

    assert path.read_bytes() == b"mine\n"


@pytest.mark.slow
def test_the_lease_ends_with_the_process_that_held_it(path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from tui_agent.session.journal import JournalFile\n"
        "journal = JournalFile(Path(sys.argv[1])); print('open', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(SessionError, match="already open"):
            JournalFile(path)
        writer.kill()
        writer.wait()

    JournalFile(path).close()


def test_a_file_that_grew_since_it_was_read_is_refused(path: Path) -> None:
    path.write_bytes(b"read\nnot read\n")
    with pytest.raises(SessionError, match="Another program wrote to session"):
        JournalFile(path, expected_size=5)

    JournalFile(path, expected_size=14).close()


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="cannot be opened for writing: No such file"):
        JournalFile(tmp_path / "missing" / "one.jsonl")


def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SessionError, match="cannot be opened for writing"):
        JournalFile(path)


def test_only_regular_files_are_journals(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(SessionError, match="is not a regular file"):
        JournalFile(path)


def test_short_writes_are_continued(path: Path) -> None:
    journal = JournalFile(path, disk=FailingDisk(piece=3))
    journal.append(b"a longer line\n", durable=True)
    journal.close()

    assert path.read_bytes() == b"a longer line\n"


def test_a_half_written_line_is_removed_before_the_retry(path: Path) -> None:
    disk = FailingDisk(room=8)
    journal = JournalFile(path, disk=disk)
    journal.append(b"first\n", durable=False)
    with pytest.raises(OSError, match="No space left"):
        journal.append(b"second\n", durable=False)
    assert path.read_bytes() == b"first\nse"

    disk.room = None
    journal.append(b"second\n", durable=False)
    journal.close()

    assert path.read_bytes() == b"first\nsecond\n"


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


def test_an_action_on_an_open_journal_is_refused(path: Path) -> None:
    journal = JournalFile(path)
    with pytest.raises(SessionError, match="already open"):
        with_journal_lock(path, path.unlink)
    assert path.exists()

    journal.close()
    with_journal_lock(path, path.unlink)
    assert not path.exists()


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
