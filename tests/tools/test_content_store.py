"""The store of contents by hash."""

from pathlib import Path

from tui_agent.tools import file_states
from tui_agent.tools.file_states import ContentStore


def test_the_same_content_is_stored_once(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)

    assert store.put(b"same", durable=True) == store.put(b"same")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_the_directory_is_created_with_the_first_content(tmp_path: Path) -> None:
    assert ContentStore(tmp_path / "contents").get("ab" * 16) is None
    assert not (tmp_path / "contents").exists()


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    ContentStore(tmp_path / "contents").put(b"secret")

    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "contents").rglob("*")}
    assert modes == {0}
    assert (tmp_path / "contents").stat().st_mode & 0o777 == 0o700


def test_a_damaged_content_is_none(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)
    digest, _ = store.put(b"whole")
    next(path for path in tmp_path.rglob("*") if path.is_file()).write_bytes(b"who")

    assert store.get(digest) is None


def test_a_name_that_is_not_a_digest_finds_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")

    assert ContentStore(tmp_path / "contents").get("../secret") is None
    assert ContentStore(tmp_path / "contents").get("") is None


def test_the_size_limit_includes_contents_of_earlier_runs(tmp_path: Path) -> None:
    ContentStore(tmp_path, limit=10).put(b"12345678")

    assert not ContentStore(tmp_path, limit=10).put(b"123")[1]
    assert ContentStore(tmp_path, limit=10).put(b"12")[1]


def test_a_content_that_is_too_large_has_a_digest_but_is_not_stored(tmp_path: Path) -> None:
    digest, kept = ContentStore(tmp_path).put(bytes(file_states.CONTENT_LIMIT + 1))

    assert digest
    assert not kept


def test_a_full_disk_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "contents").write_text("in the way")

    assert not ContentStore(tmp_path / "contents").put(b"x")[1]
