"""The store of contents by hash."""

from pathlib import Path

from tui_agent.tools.file_states import CONTENT_LIMIT, ContentStore


def test_a_content_is_stored_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    store = ContentStore(tmp_path / "contents")
    (tmp_path / "secret").write_text("x")
    assert (store.get("ab" * 16), store.get("../secret"), store.get("")) == (None, None, None)
    assert not store.root.exists(), "the first content creates it"

    digest, _ = store.put(b"same", durable=True)

    assert store.put(b"same") == (digest, True)
    (file,) = (path for path in store.root.rglob("*") if path.is_file())
    assert {path.stat().st_mode & 0o077 for path in (store.root, *store.root.rglob("*"))} == {0}
    assert store.get(digest) == b"same"
    file.write_bytes(b"who")
    assert store.get(digest) is None, "it is damaged"


def test_contents_beyond_a_limit_are_not_stored(tmp_path: Path) -> None:
    ContentStore(tmp_path / "small", limit=10).put(b"12345678")
    # Contents of earlier runs count.
    assert not ContentStore(tmp_path / "small", limit=10).put(b"123")[1]
    assert ContentStore(tmp_path / "small", limit=10).put(b"12")[1]

    digest, kept = ContentStore(tmp_path / "large").put(bytes(CONTENT_LIMIT + 1))
    assert (bool(digest), kept) == (True, False)
    (tmp_path / "in the way").write_text("")
    assert not ContentStore(tmp_path / "in the way").put(b"x")[1], "as on a full disk"
