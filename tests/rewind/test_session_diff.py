"""Changes of the session and of the work tree: lists, differences of a file, and their undo, with a real git."""

import os
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.rewind.sessions import GIT, Kept
from tests.support.file_modes import enforce_file_modes
from tui_agent.git.git_program import find_bubblewrap
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import SessionRewound
from tui_agent.protocol.facts.change_facts import ChangedFile, DiffView
from tui_agent.protocol.messages import TextBlock, UserMessage
from tui_agent.providers.scripted_provider import call
from tui_agent.session.journal_reader import read_journal
from tui_agent.workbench.session_diff import NOT_SAVED, SessionDiff, WorkTree

LINES = "".join(f"line {number}\n" for number in range(1, 41))


def git(root: Path, *arguments: str) -> None:
    subprocess.run((*GIT, *arguments), cwd=root, check=True)


def diff_of(kept: Kept) -> SessionDiff:
    return SessionDiff(kept.root, kept.rewinder, is_trusted=True)


async def found(diff: SessionDiff, view: DiffView) -> dict[str, ChangedFile]:
    return {file.shown: file for file in (await diff.files(view)).files}


async def test_the_session_lists_what_differs_from_before_it(shop: Kept) -> None:
    (shop.root / "mine.py").write_text("mine\n")
    await shop.ask(
        "work",
        call("bash", command="echo more >> price.py"),
        call("write", path="new.py", content="new\n"),
        call("read", path="cart.py"),
        call("edit", path="cart.py", old_string="two", new_string="three"),
        call("edit", path="cart.py", old_string="three", new_string="two"),
        call("bash", command="rm mine.py"),
    )
    diff = diff_of(shop)
    files = await found(diff, "session")
    assert {name: (file.change, file.counts) for name, file in files.items()} == {
        "mine.py": ("deleted", (0, 1)),
        "new.py": ("added", (1, 0)),
        "price.py": ("changed", (1, 0)),
    }
    shown = await diff.difference(files["price.py"])
    assert [line.text for line in shown.diff.hunks[0].lines if line.kind == "added"] == ["more"]

    for name, file in files.items():
        await diff.undo(await diff.difference(file), None)
        assert name not in await found(diff, "session")
    assert (shop.root / "mine.py").read_text() == "mine\n"
    assert not (shop.root / "new.py").exists()
    await shop.check()


async def test_the_undo_of_a_part_reaches_the_model_and_can_be_undone(shop: Kept) -> None:
    path = shop.root / "price.py"
    path.write_bytes(LINES.replace("\n", "\r\n").encode())
    changed = LINES.replace("line 3\n", "line three\n").replace("line 30\n", "").replace("\n", "\r\n")
    await shop.ask(
        "work",
        call("read", path="price.py"),
        call("bash", command="sed -i 's/line 3\\r/line three\\r/; 30d' price.py"),
    )
    assert path.read_bytes() == changed.encode()
    diff = diff_of(shop)
    shown = await diff.difference((await found(diff, "session"))["price.py"])
    assert shown.has_parts
    assert len(shown.diff.hunks) == 2

    await diff.undo(shown, {1})
    assert path.read_bytes() == LINES.replace("line 3\n", "line three\n").replace("\n", "\r\n").encode()
    await shop.rewinder.keep()
    events = read_journal(shop.rewinder.journal).envelopes
    undone = [one.event for one in events if isinstance(one.event, SessionRewound)][-1]
    assert undone.text == "1 of 2 parts of the changes of price.py since the session began"
    assert undone.is_undo
    last = shop.loop.history.messages()[-1]
    assert isinstance(last, UserMessage)
    assert isinstance(last.content[0], TextBlock)
    assert last.content[0].text == f"The user undid {undone.text}. Read a file again before you rely on it."

    point = next(one for one in await shop.rewinder.points() if not one.is_turn)
    await shop.rewinder.carry_out(await shop.rewinder.plan(point), "files")
    assert path.read_bytes() == changed.encode()
    await shop.check()


async def test_a_file_that_changed_since_it_was_shown_is_left_alone(shop: Kept) -> None:
    await shop.ask("work", call("bash", command="echo two > price.py"))
    diff = diff_of(shop)
    shown = await diff.difference((await found(diff, "session"))["price.py"])
    (shop.root / "price.py").write_text("mine\n")
    for parts in (None, {0}):
        with pytest.raises(ToolError, match="it changed after"):
            await diff.undo(shown, parts)
    assert (shop.root / "price.py").read_text() == "mine\n"
    again = (await found(diff, "session"))["price.py"]
    assert "someone else changed it since" in again.note


async def test_the_work_tree_has_every_kind_of_change(shop: Kept, tmp_path: Path) -> None:
    root = shop.root
    for name, content in {"moved.py": LINES, "gone.py": LINES[:50], "tool.sh": "#!\n", "logo.png": "\0one"}.items():
        (root / name).write_text(content)
    (root / "link").symlink_to("cart.py")
    (root / "sub").mkdir()
    (root / "sub/odd name\n.py").write_text("odd\n")
    (root / ".gitattributes").write_text("*.big filter=lfs\n*.txt text eol=crlf\n")
    (root / "data.big").write_text("pointer\n")
    (root / "notes.txt").write_bytes(b"a\r\nb\r\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "second")
    # None of these programs may run.
    mark = tmp_path / "ran"
    for key in ("filter.lfs.clean", "filter.lfs.smudge", "diff.external", "core.fsmonitor", "diff.odd.textconv"):
        git(root, "config", key, f"touch {mark}; cat")
    os.rename(root / "moved.py", root / "sub/moved.py")
    git(root, "add", "-A", ":!data.big")
    mark.unlink(missing_ok=True)
    (root / "gone.py").unlink()
    (root / "tool.sh").chmod(0o755)
    (root / "logo.png").write_bytes(b"\0two!")
    (root / "link").unlink()
    (root / "link").symlink_to("price.py")
    (root / "sub/odd name\n.py").write_text("even\n")
    (root / "notes.txt").write_bytes(b"a\r\nc\r\n")
    (root / "data.big").write_text("other\n")
    (root / "fresh.py").write_text("fresh\n")
    git(root, "init", "-q", "inner")
    (root / "inner/file").write_text("x")

    diff = diff_of(shop)
    files = await found(diff, "tree")
    assert {name: file.change for name, file in files.items()} == {
        "data.big": "changed",
        "fresh.py": "untracked",
        "gone.py": "deleted",
        "inner/": "untracked",
        "link": "changed",
        "logo.png": "changed",
        "notes.txt": "changed",
        "sub/moved.py": "renamed",
        "sub/odd name\n.py": "changed",
        "tool.sh": "changed",
    }
    shown = {name: await diff.difference(file) for name, file in files.items()}
    notes = {name: one.notes for name, one in shown.items() if one.notes}
    assert notes == {
        "link": ("a symbolic link that pointed to cart.py", "a symbolic link that points to price.py"),
        "logo.png": ("a binary file: 4 B → 5 B",),
        "sub/moved.py": ("renamed from moved.py",),
        "tool.sh": ("mode 644 → 755",),
    }
    problems = {name: one.problem for name, one in shown.items() if one.problem}
    assert problems == {
        "data.big": "git's filter “lfs” makes its content; `git restore` undoes it",
        "inner/": "it is a repository of its own",
    }
    for name, one in shown.items():
        if name not in problems:
            await diff.undo(one, None)
    assert set(await found(diff, "tree")) == set(problems)
    assert (root / "notes.txt").read_bytes() == b"a\r\nb\r\n"
    assert os.readlink(root / "link") == "cart.py"
    assert (root / "tool.sh").stat().st_mode & 0o777 == 0o644
    assert not mark.exists()


async def test_a_changed_file_that_git_may_not_read_hides_no_other(shop: Kept) -> None:
    for name in ("cart.py", "price.py"):
        (shop.root / name).write_text("changed\n")
    (shop.root / "cart.py").chmod(0)
    # Walls do not let git read it either, and cannot be put up where the modes are enforced.
    with nullcontext() if find_bubblewrap(str(shop.root)) else enforce_file_modes():
        listed = WorkTree(shop.root.resolve(), True).files()
    assert [(file.shown, file.counts) for file in listed.files] == [("cart.py", None), ("price.py", None)]
    shown = await diff_of(shop).difference(listed.files[1])
    assert [line.text for line in shown.diff.hunks[0].lines if line.kind == "added"] == ["changed"]


async def test_without_git_without_a_commit_and_without_a_saved_session(shop: Kept, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    listed = await SessionDiff(bare, None, is_trusted=True).files("tree")
    assert (listed.files, listed.note) == ((), "This folder is not in a git repository.")
    git(bare, "init", "-q")
    (bare / "a.py").write_text("a\n")
    (bare / "b.py").write_text("b\n")
    git(bare, "add", "a.py")
    unsaved = SessionDiff(bare, None, is_trusted=True)
    files = await found(unsaved, "tree")
    assert {name: file.change for name, file in files.items()} == {"a.py": "added", "b.py": "untracked"}
    shown = await unsaved.difference(files["a.py"])
    assert shown.diff.added == 1
    assert shown.problem == NOT_SAVED
    assert (await unsaved.files("session")).note == "This session is not saved, so its changes are not known."
    with pytest.raises(ToolError, match="could not be undone"):
        await unsaved.undo(shown, None)
