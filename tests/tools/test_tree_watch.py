"""Changes of a command, detected by comparing the tree before and after it, and the store of contents."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rewind.sessions import git_work_tree
from tui_agent.protocol.events import FileState
from tui_agent.tools import file_states, tree_watch
from tui_agent.tools.file_states import CONTENT_LIMIT, ContentStore, TreeChange, content_of, read_file_state
from tui_agent.tools.tree_watch import TreeWatch

Changed = dict[str, tuple[bytes | None, bytes | None]]
"""Name → content before and after; None if the file did not exist or was not stored."""

in_and_out_of_git = pytest.mark.parametrize("in_git", [True, False], ids=["git", "plain"])


class Tree:
    """A watched directory."""

    def __init__(self, root: Path, kept: Path, private: tuple[Path, ...] = ()) -> None:
        self.root = root
        self.contents = ContentStore(kept)
        self.watch = TreeWatch(root, self.contents, private)

    def changes(self, happens: Callable[[], object]) -> list[TreeChange]:
        before = self.watch.look()
        assert before is not None
        happens()
        return self.watch.changes_since(before).files

    def changed(self, command: str) -> Changed:
        changes = self.changes(lambda: subprocess.run(["bash", "-c", command], cwd=self.root, check=True))
        return {
            str(one.path.relative_to(self.root)): (self._bytes(one.before), self._bytes(one.after)) for one in changes
        }

    def _bytes(self, state: FileState | None) -> bytes | None:
        return None if state is None else content_of(state, self.contents)


def tree_of(root: Path, *, in_git: bool) -> Tree:
    (root / "a.txt").write_text("a\n")
    (root / "b.txt").write_text("b\n")
    if in_git:
        git_work_tree(root)
    return Tree(root, root.parent / "kept")


@in_and_out_of_git
def test_every_kind_of_change_is_detected(root: Path, in_git: bool) -> None:
    tree = tree_of(root, in_git=in_git)

    assert tree.changed("echo more >> a.txt; rm b.txt; mkdir d; echo n > d/n; ln -s a.txt l") == {
        "a.txt": (b"a\n", b"a\nmore\n"),
        "b.txt": (b"b\n", None),
        "d/n": (None, b"n\n"),
        "l": (None, b"a.txt"),
    }
    assert tree.changed("mv a.txt c.txt; chmod +x d/n; rm l") == {
        "a.txt": (b"a\nmore\n", None),
        "c.txt": (None, b"a\nmore\n"),
        "d/n": (b"n\n", b"n\n"),
        "l": (b"a.txt", None),
    }


@in_and_out_of_git
def test_a_file_that_was_only_touched_is_unchanged(root: Path, in_git: bool) -> None:
    tree = tree_of(root, in_git=in_git)

    assert tree.changed("touch a.txt; cp b.txt x; mv x b.txt; echo t > t; rm t") == {}


@in_and_out_of_git
def test_a_change_of_the_same_length_right_after_another_is_detected(root: Path, in_git: bool) -> None:
    """Two changes at the same moment may leave the same times."""
    tree = tree_of(root, in_git=in_git)

    def rewrite() -> None:
        status = (root / "a.txt").stat()
        with (root / "a.txt").open("r+") as file:
            file.write("z")
        os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))

    assert [change.path.name for change in tree.changes(rewrite)] == ["a.txt"]


@in_and_out_of_git
def test_changes_of_the_user_before_the_command_are_not_the_commands(root: Path, in_git: bool) -> None:
    tree = tree_of(root, in_git=in_git)
    tree.changed("true")
    (root / "a.txt").write_text("mine\n")
    (root / "new").write_text("mine, too\n")

    assert tree.changed("echo x >> a.txt; rm b.txt") == {"a.txt": (b"mine\n", b"mine\nx\n"), "b.txt": (b"b\n", None)}


def test_a_content_that_git_has_is_not_stored_before_a_change(root: Path) -> None:
    tree = tree_of(root, in_git=True)
    old = 1_700_000_000
    for name in ("a.txt", "b.txt"):
        os.utime(root / name, (old, old))
    # The status time cannot be set, so the file counts as settled only in a scan some time later.
    subprocess.run(["git", "status"], cwd=root, check=True, capture_output=True)
    tree.changed("true")
    kept = {path for path in tree.contents.root.rglob("*") if path.is_file()}

    assert len(kept) <= 2
    assert tree.changed("rm a.txt")["a.txt"] == (b"a\n", None)


def test_ignored_files_are_skipped_and_not_new_when_no_longer_ignored(root: Path) -> None:
    (root / ".gitignore").write_text("secret\n")
    (root / "secret").write_text("key\n")
    tree = tree_of(root, in_git=True)

    assert tree.changed("echo other > secret") == {}
    # A file written in the tick of the clock in which the next scan begins counts as written after it.
    while time.clock_gettime_ns(tree_watch._STAMP_CLOCK) <= (root / "secret").stat().st_ctime_ns:
        time.sleep(0.001)
    assert set(tree.changed("rm .gitignore")) == {".gitignore"}


def test_a_file_that_becomes_ignored_is_not_deleted(root: Path) -> None:
    tree = tree_of(root, in_git=True)
    (root / "new").write_text("new\n")

    assert set(tree.changed("echo new > .gitignore")) == {".gitignore"}


def test_contents_with_converted_line_endings_are_not_taken_from_git(root: Path) -> None:
    (root / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (root / "w.txt").write_bytes(b"one\r\ntwo\r\n")
    tree = tree_of(root, in_git=True)

    before, _ = tree.changed("rm w.txt")["w.txt"]

    assert before in (b"one\r\ntwo\r\n", None)


def test_directories_of_tui_agent_are_not_scanned(root: Path) -> None:
    (root / "ours").mkdir()
    (root / "ours" / "journal").write_text("1\n")
    tree = Tree(root, root.parent / "kept", (root / "ours",))

    assert tree.changed("echo 2 >> ours/journal; echo x > theirs") == {"theirs": (None, b"x\n")}


def test_a_large_file_has_a_digest_and_no_stored_content_and_a_huge_one_only_its_size(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = ContentStore(root / "contents")
    file, other = root / "large", root / "other"
    for path, end in ((file, b"a"), (other, b"b")):
        with path.open("wb") as writing:
            writing.truncate(CONTENT_LIMIT)
            writing.seek(CONTENT_LIMIT)
            writing.write(end)
    one, two = (read_file_state(path, contents) for path in (file, other))
    monkeypatch.setattr(file_states, "HASHED_LIMIT", CONTENT_LIMIT)
    huge = read_file_state(file, contents)

    assert one is not None
    assert two is not None
    assert (one.size, one.kept) == (two.size, two.kept) == (CONTENT_LIMIT + 1, False)
    assert one.digest != two.digest
    assert huge == one.model_copy(update={"digest": ""})


def test_a_tree_with_too_many_files_is_not_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_watch, "MOST_FILES", 1)
    watch = tree_of(root, in_git=False).watch

    assert watch.look() is None
    monkeypatch.undo()
    assert watch.look() is None


def test_changes_are_incomplete_if_the_tree_grows_too_large(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = tree_of(root, in_git=False).watch
    before = watch.look()
    assert before is not None
    (root / "a.txt").write_text("changed\n")
    (root / "new").write_text("new\n")
    monkeypatch.setattr(tree_watch, "MOST_FILES", 2)

    changes = watch.changes_since(before)

    assert ([change.path.name for change in changes.files], changes.is_complete) == (["a.txt"], False)


@pytest.mark.slow
def test_a_file_created_right_after_a_scan_is_detected(root: Path) -> None:
    """The clock for file times lags behind the real-time clock by some milliseconds."""
    tree = tree_of(root, in_git=False)

    for number in range(50):
        name = root / f"new-{number}"
        assert [change.path for change in tree.changes(name.touch)] == [name]


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
