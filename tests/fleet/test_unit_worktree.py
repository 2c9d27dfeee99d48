"""Worktrees of units with real git: apart from each other, recorded after each step, restored elsewhere."""

from pathlib import Path

import pytest

from tui_agent.fleet.unit_failure import UnitFailureError
from tui_agent.fleet.unit_worktree import UnitWorktree, open_worktree, resolve_ref, updated_mirror

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


async def test_a_repository_that_cannot_be_fetched_names_the_reason(tmp_path: Path) -> None:
    with pytest.raises(UnitFailureError, match="missing"):
        await updated_mirror(tmp_path, str(tmp_path / "missing"), tmp_path)
