"""The workspace resolves paths, creates files for long output, and names files that look like a missing one."""

import errno
import os
import stat
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.file_errors import is_directory_error, missing_file_error, os_errors_as
from tui_agent.tools.workspace import Workspace


def test_names_are_resolved_from_the_root_through_every_link_and_shown_relative_to_it(
    workspace: Workspace, root: Path, clean_environment: Path
) -> None:
    (root / "deep" / "er").mkdir(parents=True)
    (root / "link").symlink_to("deep/er")

    assert workspace.resolve("a/b.py") == root / "a" / "b.py"
    assert workspace.resolve("link/new.py") == root / "deep" / "er" / "new.py"
    assert workspace.resolve("link/../x") == root / "deep" / "x", "the parent of the link's target"
    assert workspace.resolve("/etc/../usr") == Path("/usr")
    assert (workspace.given("~/x"), workspace.given("src/~x")) == (f"{clean_environment}/x", "src/~x")
    assert workspace.resolve("~/x") == clean_environment / "x"
    assert workspace.display(root / "a" / "b.py") == "a/b.py"
    assert workspace.display(root) == "."
    assert workspace.display(Path(f"{root}-evil/x")) == f"{root}-evil/x"
    assert not workspace.contains(Path(f"{root}-evil/x"))


def test_spool_files_are_private_from_the_start(workspace: Workspace) -> None:
    workspace.spool_dir.mkdir(mode=0o755)
    descriptor, path = workspace.new_spool_file()
    os.close(descriptor)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, "one that is open to others is closed"
    assert workspace.is_spooled(path)
    assert not workspace.is_spooled(workspace.root / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_spool_directory_of_another_user_is_refused(workspace: Workspace) -> None:
    workspace.spool_dir.mkdir(mode=0o700)
    os.chown(workspace.spool_dir, 12345, 12345)

    with pytest.raises(PermissionError, match="not a directory of this user"):
        workspace.new_spool_file()


@table(
    ("error", "words"),
    [
        (PermissionError(errno.EACCES, "x"), "permission denied"),
        (OSError(errno.ENOSPC, "x"), "the disk is full"),
        (NotADirectoryError(errno.ENOTDIR, "x"), "a part of the path is a file or a symbolic link"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError("strange"), "strange"),
    ],
)
def test_an_os_error_becomes_a_sentence(error: OSError, words: str) -> None:
    with pytest.raises(ToolError, match=f"cannot read a: {words}"), os_errors_as("cannot read a"):
        raise error


def test_the_error_for_a_missing_file_names_similar_files(root: Path) -> None:
    for name in ("settings.py", "README.md", "a\u00a0b", "a\u202fb", "p\u0430ss.txt"):
        (root / name).touch()
    (root / "source").mkdir()
    ends = {
        "setings.py": "setings.py does not exist; did you mean settings.py?",
        "readme.MD": "did you mean README.md?",
        "qqqq": "qqqq does not exist",
        "a b": "names that look equal: a\u00a0b (U+00A0 NO-BREAK SPACE instead of U+0020 SPACE) or a\u202fb (U+202F "
        "NARROW NO-BREAK SPACE instead of U+0020 SPACE)",
        "pass.txt": "p\u0430ss.txt (U+0430 CYRILLIC SMALL LETTER A instead of U+0061 LATIN SMALL LETTER A)?",
        "sorce/deep/a.py": f"{root} has no entry 'sorce'; did you mean source/?",
    }

    words = {name: str(missing_file_error(root / name, name)) for name in ends}

    assert {name: text for name, text in words.items() if not text.endswith(ends[name])} == {}


def test_the_error_for_a_directory_lists_its_entries(root: Path) -> None:
    assert "it is empty" in str(is_directory_error(root, "work"))

    for number in range(40):
        (root / f"f{number:02}").touch()
    (root / "d").mkdir()

    words = str(is_directory_error(root, "work"))
    assert "work is a directory; it contains: d/, f00, " in words
    assert "and 11 more" in words
