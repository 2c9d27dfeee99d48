"""Worktrees of units with real git: apart from each other, recorded after each step, restored elsewhere."""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.programs import hide_walls
from tests.support.table import table
from tests.support.terminal import PATIENCE
from tui_agent.fleet import worktree_git
from tui_agent.fleet.unit_process import UnitFailureError
from tui_agent.fleet.unit_worktree import UnitWorktree, open_worktree, resolve_ref, updated_mirror
from tui_agent.fleet.worktree_git import apply_as_branch, is_local
from tui_agent.protocol.errors import ConfigurationError

from .repositories import git


async def opened(tmp_path: Path, repo: Path, name: str) -> tuple[UnitWorktree, Path]:
    home = tmp_path / name
    home.mkdir()
    mirror = await updated_mirror(tmp_path, str(repo), tmp_path)
    base = await resolve_ref(mirror, "HEAD")
    return await open_worktree(home, mirror, name, str(repo), base), home


async def test_steps_are_restored_elsewhere_and_become_one_patch(tmp_path: Path, repo: Path) -> None:
    first, _ = await opened(tmp_path, repo, "u1")
    (first.path / "kept.txt").write_text("changed\n")
    (first.path / "run.log").write_text("ignored\n")
    await first.record("after event 1")
    bundles = [await first.bundle()]
    (first.path / "gone.txt").unlink()
    (first.path / "ünï \n.bin").write_bytes(bytes(range(256)))
    await first.record("after event 2")
    await first.record("nothing new")
    bundles.append(await first.bundle())

    assert await first.bundle() == b""
    assert git("status", "--porcelain", cwd=first.path).splitlines()[:2] == ["D gone.txt", " M kept.txt"]
    assert git("log", "--format=%s", "--all", cwd=first.path) == "Begin", "its own repository knows nothing of it"

    other, home = await opened(tmp_path, repo, "u1-again")
    other._ref = first._ref  # pyright: ignore[reportPrivateUsage]
    await other.restore(bundles, home)
    assert (other.path / "kept.txt").read_text() == "changed\n"
    assert not (other.path / "gone.txt").exists()
    assert (other.path / "ünï \n.bin").read_bytes() == bytes(range(256))
    assert not (other.path / "run.log").exists()

    (other.path / "new.txt").write_text("after\n")
    await other.record("after event 3")
    assert await other.bundle()
    patch, changes = await other.patch("Change it")
    assert (changes.files, changes.insertions, changes.deletions) == (4, 2, 2)
    (tmp_path / "it.patch").write_bytes(patch)
    git("am", "--quiet", str(tmp_path / "it.patch"), cwd=repo)
    assert (repo / "new.txt").read_text() == "after\n"
    assert (repo / "ünï \n.bin").read_bytes() == bytes(range(256))


async def test_units_have_branches_and_settings_of_their_own(tmp_path: Path, repo: Path) -> None:
    one, _ = await opened(tmp_path, repo, "u1")
    two, _ = await opened(tmp_path, repo, "u2")

    for worktree in (one, two):
        git("checkout", "--quiet", "-b", "fix", cwd=worktree.path)
        git("config", "core.fsmonitor", "touch /nowhere", cwd=worktree.path)
        (worktree.path / "new.txt").write_text("x")
        await worktree.record("after event 1")
        assert await worktree.bundle()

    assert git("branch", "--list", cwd=repo).split() == ["*", "main", "side"]
    assert git("remote", "get-url", "origin", cwd=one.path) == str(repo)


async def test_a_ref_is_a_branch_a_tag_or_a_hash(tmp_path: Path, repo: Path) -> None:
    mirror = await updated_mirror(tmp_path, str(repo), tmp_path)
    head = git("rev-parse", "HEAD", cwd=repo)

    for ref in ("HEAD", "main", "side", "v1", head, head[:10]):
        assert await resolve_ref(mirror, ref) == head
    for ref in ("nope", "HEAD~1", "main:kept.txt", "--all"):
        with pytest.raises(UnitFailureError, match="no branch, tag or commit"):
            await resolve_ref(mirror, ref)


async def test_locks_of_a_killed_git_do_not_outlast_it(tmp_path: Path, repo: Path) -> None:
    mirror = await updated_mirror(tmp_path, str(repo), tmp_path)
    for lock in ("refs/heads/main.lock", "config.lock", "packed-refs.lock"):
        (mirror / lock).touch()
    (mirror / "HEAD").unlink()
    git("commit", "--quiet", "--allow-empty", "-m", "Go on", cwd=repo)
    later = tmp_path / "later"
    later.mkdir()

    again = await updated_mirror(tmp_path, str(repo), later)

    assert await resolve_ref(again, "main") == git("rev-parse", "HEAD", cwd=repo)


def test_git_dies_with_its_worker_even_if_that_is_killed(tmp_path: Path) -> None:
    """A fetch that no one waits for would hold the locks of a mirror."""
    os.mkfifo(tmp_path / "told")
    start = "import asyncio, sys; from tui_agent.fleet.worktree_git import git"
    start += '; run = git("-c", f"alias.wait=!echo >{sys.argv[1]}/told; sleep 60", "wait", writable=[sys.argv[1]])'
    worker = subprocess.Popen([sys.executable, "-c", f"{start}; asyncio.run(run)", str(tmp_path)])
    assert (tmp_path / "told").read_text() == "\n"
    running = psutil.Process(worker.pid).children(recursive=True)
    worker.kill()
    worker.wait()
    assert running
    assert psutil.wait_procs(running, timeout=PATIENCE)[1] == []


async def test_settings_of_nested_repositories_run_nothing_and_their_files_are_kept(tmp_path: Path, repo: Path) -> None:
    """A unit can make a repository whose settings name programs; git asks such a one for its state once it knows it."""
    module = tmp_path / "module"
    module.mkdir()
    git("init", "--quiet", cwd=module)
    git("commit", "--quiet", "--allow-empty", "-m", "Begin", cwd=module)
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "module", cwd=repo)
    git("commit", "--quiet", "-m", "Add a submodule", cwd=repo)
    unit, _ = await opened(tmp_path, repo, "u1")
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", cwd=unit.path)
    for name in ("made", "made/deep", "unborn", "empty", "new [x]"):
        git("init", "--quiet", name, cwd=unit.path)
    for name in ("made", "made/deep", "new [x]", "module"):
        (unit.path / name / "file").write_text("first\n")
        git("add", "file", cwd=unit.path / name)
        git("commit", "--quiet", "-m", "Add a file", cwd=unit.path / name)
    (unit.path / "unborn" / "file").write_text("first\n")
    await unit.record("after event 1")
    for name in ("made", "made/deep", "unborn", "new [x]", "module"):
        git("config", "filter.run.clean", f"touch {tmp_path}/ran; cat", cwd=unit.path / name)
        git("config", "core.fsmonitor", f"touch {tmp_path}/ran; false", cwd=unit.path / name)
        (unit.path / name / ".gitattributes").write_text("* filter=run\n")
        (unit.path / name / "file").write_text("second\n")
    (unit.path / "made" / "other").write_text("third\n")
    await unit.record("after event 2")
    bundle = await unit.bundle()

    assert not (tmp_path / "ran").exists()
    other, home = await opened(tmp_path, repo, "u2")
    other._ref = unit._ref  # pyright: ignore[reportPrivateUsage]
    await other.restore([bundle], home)
    for name in ("made", "made/deep", "unborn", "new [x]"):
        assert (other.path / name / "file").read_text() == "second\n"
    assert (other.path / "made" / "other").read_text() == "third\n"
    patch, _ = await other.patch("Make repositories")
    assert b"Subproject" not in patch, "the link of the repository stays as it was"


async def test_links_to_repositories_made_while_the_files_are_read_are_dropped(tmp_path: Path, repo: Path) -> None:
    unit, _ = await opened(tmp_path, repo, "u1")
    git("init", "--quiet", "late", cwd=unit.path)
    (unit.path / "late" / "file").write_text("text\n")
    git("add", "file", cwd=unit.path / "late")
    git("commit", "--quiet", "-m", "Add a file", cwd=unit.path / "late")
    # As if it had been made between the two steps.
    await unit._git("add", "--all")  # pyright: ignore[reportPrivateUsage]
    await unit._drop_links()  # pyright: ignore[reportPrivateUsage]
    assert b"160000" not in await unit._git("ls-files", "--stage")  # pyright: ignore[reportPrivateUsage]


async def test_git_that_is_interrupted_leaves_no_lock(tmp_path: Path, repo: Path) -> None:
    """A unit whose time is over while git reads its files still gets a patch."""
    unit, home = await opened(tmp_path, repo, "u1")
    for number in range(300):
        (unit.path / f"{number}.bin").write_bytes(bytes([number % 256]) * 200_000)
    recording = asyncio.create_task(unit.record("interrupted"))
    while not (home / "history.git" / "index.lock").exists() and not recording.done():
        await asyncio.sleep(0)
    recording.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await recording
    await unit.record("end")
    _, changes = await unit.patch("Add files")
    assert changes.files == 300


async def test_changes_that_are_too_large_fail_before_they_fill_the_memory(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit, _ = await opened(tmp_path, repo, "u1")
    (unit.path / "large.bin").write_bytes(os.urandom(300_000))
    await unit.record("after event 1")
    monkeypatch.setattr(worktree_git, "LARGEST_OUTPUT", 100_000)
    with pytest.raises(UnitFailureError, match="git bundle wrote more than"):
        await unit.bundle()


async def test_settings_of_the_user_do_not_change_the_form_of_a_patch(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(
        f"[diff]\nnoprefix = true\nexternal = touch {tmp_path}/ran;\n[color]\nui = always\n"
        "[format]\nattach = true\nuseAutoBase = true\ncoverLetter = true\nsignOff = true\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    unit, _ = await opened(tmp_path, repo, "u1")
    (unit.path / "kept.txt").write_text("changed\n")
    await unit.record("after event 1")
    patch, _ = await unit.patch("Change it")

    (tmp_path / "it.patch").write_bytes(patch)
    git("apply", str(tmp_path / "it.patch"), cwd=repo)
    assert (repo / "kept.txt").read_text() == "changed\n"
    assert b"Signed-off-by" not in patch
    assert not (tmp_path / "ran").exists()


async def test_without_walls_a_repository_that_leads_elsewhere_is_not_read(
    tmp_path: Path, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_walls(tmp_path / "hidden", monkeypatch)
    unit, _ = await opened(tmp_path, repo, "u1")
    assert (unit.path / "kept.txt").read_text() == "one\n"
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/private/.git/objects\n")
    with pytest.raises(UnitFailureError, match="its data leads out of it"):
        await updated_mirror(tmp_path, str(repo), repo)
    with pytest.raises(ConfigurationError, match="its data leads out of it"):
        await apply_as_branch(repo, unit.base, b"", "made", "Change")


@table(
    ("address", "expected"),
    [("/a/b", True), ("../b", True), ("./a:b", True), ("file:///a/b", True), ("https://a/b", False),
     ("ssh://git@a/b", False), ("git@a:b", False), ("a:/b", False)],
)  # fmt: skip
def test_only_a_network_address_is_fetched_without_walls(address: str, expected: bool) -> None:
    assert is_local(address) is expected
