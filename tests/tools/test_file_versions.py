"""Remembered versions of files, and their limits."""

from pathlib import Path

from tui_agent.tools.file_versions import (
    KEPT_CONTENT,
    KEPT_CONTENT_IN_ALL,
    FileVersion,
    FileVersions,
    digest_of,
)


def version(content: bytes, inode: int = 1, *, hashed: bool = True) -> FileVersion:
    digest = digest_of(content) if hashed else None
    return FileVersion(1, inode, len(content), 5, digest, content)


def test_kept_contents_are_bounded_and_hashes_are_not(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x")
    status = file.stat()
    versions = FileVersions()
    content = b"x" * KEPT_CONTENT
    count = KEPT_CONTENT_IN_ALL // KEPT_CONTENT + 3

    for number in range(count):
        versions.remember(Path(f"/{number}"), FileVersion.of(status, "hash", content))

    seen = [versions.last_seen(Path(f"/{number}")) for number in range(count)]
    assert all(one is not None and one.digest == "hash" for one in seen)
    assert [one.content is None for one in seen if one is not None] == [True] * 3 + [False] * (count - 3)


def test_only_an_unbroken_chain_of_own_changes_is_own() -> None:
    versions, path = FileVersions(), Path("/a")
    contents = [b"1", b"2", b"3"]
    one, two, three = (version(content) for content in contents)
    digests = [digest_of(content) for content in contents]
    versions.remember(path, one)

    versions.remember_own_change(path, digests[1], digests[2])
    assert not versions.is_own(path, three)
    versions.remember_own_change(path, digests[0], digests[1])
    versions.remember_own_change(path, digests[1], digests[2])
    assert [versions.is_own(path, known) for known in (one, two, three)] == [False, False, True]
    versions.remember(path, three)
    assert not versions.is_own(path, three)
