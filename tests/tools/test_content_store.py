"""Contents under their hash."""

from pathlib import Path

from tui_agent.tools import content_store
from tui_agent.tools.content_store import ContentStore


def test_what_is_put_can_be_had_again(tmp_path: Path) -> None:
    digest, kept = ContentStore(tmp_path / "contents").put(b"something\0")

    assert kept
    assert ContentStore(tmp_path / "contents").get(digest) == b"something\0"


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    store = ContentStore(tmp_path)

    assert store.put(b"same", durable=True) == store.put(b"same")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


def test_nothing_is_made_before_something_is_kept(tmp_path: Path) -> None:
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


def test_a_name_that_is_no_digest_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")

    assert ContentStore(tmp_path / "contents").get("../secret") is None
    assert ContentStore(tmp_path / "contents").get("") is None


def test_there_is_an_end_to_what_is_kept_also_over_lives(tmp_path: Path) -> None:
    ContentStore(tmp_path, limit=10).put(b"12345678")

    assert not ContentStore(tmp_path, limit=10).put(b"123")[1]
    assert ContentStore(tmp_path, limit=10).put(b"12")[1]


def test_a_content_that_is_too_large_has_a_digest_and_is_not_kept(tmp_path: Path) -> None:
    digest, kept = ContentStore(tmp_path).put(bytes(content_store.CONTENT_LIMIT + 1))

    assert digest
    assert not kept


def test_a_disk_that_takes_nothing_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "contents").write_text("in the way")

    assert not ContentStore(tmp_path / "contents").put(b"x")[1]
