"""Layers that a command prepared: reading and keeping them neither hangs nor lies, and writes nowhere else.

All of them run if the variable `TRIAL_TRICKS` is `all`, a few otherwise.
"""

import os
import random
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tui_agent.protocol.trial import KeepSelection, LayerChanges
from tui_agent.trial.layer_limits import LayerLimits
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trials import Trials

from .layers import RealLayer, everything, outside, tree_of
from .ways import LAYERS, Ran, made, tree_state

Made = tuple[Trials, Path, Callable[..., Ran]]
_SET = "python3 -c 'import os,sys; os.setxattr(sys.argv[1], sys.argv[2], sys.argv[3].encode())'"
_TEXT = Path(__file__).with_name("layer_tricks.txt").read_text("utf-8").rstrip("\n")
TRICKS = [trick.replace("SET", _SET) for trick in _TEXT.split("\n%%\n")[1:]]
COUNT = len(TRICKS) if os.environ.get("TRIAL_TRICKS") == "all" else 10
START = (
    "mkdir -p d/e rep; echo a>a; echo b>d/b; echo c>d/e/c; ln -s a l; echo x>rep/x; echo m>mv; "
    "echo build/ > .gitignore; git init -qb main; git add .; git -c user.name=x -c user.email=x@y commit -qm x; "
    "mkdir .git/hooks"
)
GUARDED = (".git", ".gitattributes", ".gitmodules", "sub/.git", ".GIT", ".Git", "d/.gitattributes")
"""Paths that a mode or a rule never keeps."""
LIMITS = LayerLimits(size=200 << 20, files=5_000, processes=200)


@pytest.fixture(params=LAYERS[:2])
def trial(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    sorter = PathSorter(tmp_path / "work", is_trusted=True)
    yield from made(tmp_path, monkeypatch, request.param, sorter=sorter, limits=LIMITS)


def prepare(root: Path) -> Path:
    """Fill the workspace, and return a directory beside it."""
    around = root.parent / "around"
    (around / "objects").mkdir(parents=True)
    for path in (around / "file", around / "shared", around / "objects/x"):
        path.write_text("outside\n", "utf-8")
    outside(root, START)
    os.link(around / "shared", root / "hard")
    return around


def by_mode(changes: LayerChanges) -> KeepSelection:
    """Return what accept_edits keeps."""
    return KeepSelection(
        paths=tuple(
            change.path
            for change in changes.changes
            if change.sort in ("workspace", "ignored") and not change.with_repository and not change.conflict
        )
    )


def unfit(root: Path) -> list[str]:
    """Return what must not be in a workspace: special files, more rights, and links that lead out."""
    found: list[str] = []
    for directory, names, files in os.walk(root):
        for path in (Path(directory, name) for name in (*names, *files)):
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                with suppress(OSError, RuntimeError):
                    is_inside = Path(os.path.realpath(path)).is_relative_to(root)
                    found += [] if is_inside else [f"{path} → {os.readlink(path)}"]
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or (stat.S_ISREG(mode) and mode & 0o6000):
                found.append(f"{path} {mode:o}")
    return found


def open_up(root: Path) -> None:
    """Make everything readable again for the test."""
    for directory, names, _ in os.walk(root):
        os.chmod(directory, 0o755)
        for name in names:
            if not (path := Path(directory, name)).is_symlink():
                path.chmod(0o755)


@pytest.mark.slow
def test_no_trick_of_a_layer_writes_elsewhere_or_is_kept_unseen(trial: Made) -> None:
    trials, root, run = trial
    around = prepare(root)
    assert trials.facts.backend == "overlay"
    problems: list[str] = []
    for trick in random.sample(TRICKS, COUNT):
        problems += [f"{trick!r}: {words}" for words in _try(trick, root, around, run)]

    assert problems == []


def _try(trick: str, root: Path, around: Path, run: Callable[..., Ran]) -> Iterator[str]:
    """Yield what a trick reached, first with what a mode keeps and then with a yes of the user to everything."""
    beside, start = tree_state(around), tree_of(root)
    for select in (by_mode, everything):
        before, began = tree_state(root), time.process_time()
        layer = run(f"({trick}) 2>&1", timeout=30).layer
        try:
            changes = layer.changes()
            if tree_state(root) != before:
                yield "the workspace changed before the answer"
            report = layer.keep(select(changes)) if not changes.problem else None
        finally:
            layer.discard()
        open_up(root)
        now = tree_of(root)
        named = {change.path for change in changes.changes}
        unnamed = {path for path in {*now, *start} if now.get(path) != start.get(path) and not _is_named(path, named)}
        if select is by_mode and (touched := [path for path in unnamed if path.split("/")[0] in GUARDED]):
            yield f"a mode kept {touched}"
        if extra := [path for path in unnamed if not path.startswith(".git/") or not changes.repository]:
            yield f"it was not named: {extra[:5]} {report}"
        if found := unfit(root):
            yield f"{select.__name__} kept {found[:5]}"
        if tree_state(around) != beside:
            yield "something outside changed"
        if time.process_time() - began > 20:
            yield "it took too long"
        if now != start or (root / "hard").lstat().st_nlink != 2:
            _restore(root, around)
            start, beside = tree_of(root), tree_state(around)


def _is_named(path: str, named: set[str]) -> bool:
    """Return True if the path, one above it or one below it was proposed."""
    return path in named or any(one.startswith(f"{path}/") or path.startswith(f"{one}/") for one in named)


def _restore(root: Path, around: Path) -> None:
    outside(root, "chmod -R u+rwx . ; find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +; rm -rf ../around")
    prepare(root)


def test_limits_hold_for_what_a_command_writes_at_its_end(trial: Made) -> None:
    _, _, run = trial
    ran = run("sleep 0.4; for i in {1..5100}; do : > n$i; done")

    assert "files" in ran.layer.changes().problem


@pytest.mark.parametrize("name", ["d", "d/e", "rep"])
def test_a_directory_that_turns_into_a_link_during_keeping_leads_nowhere(tmp_path: Path, name: str) -> None:
    root = tmp_path / "work"
    root.mkdir()
    around = prepare(root)
    beside = tree_of(around)
    over = threading.Event()

    def swap() -> None:
        aside = root / "aside"
        while not over.is_set():
            with suppress(OSError):
                (root / name).rename(aside)
                (root / name).symlink_to(around)
                (root / name).unlink()
                aside.rename(root / name)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for number in range(12):
            layer = RealLayer.over(tmp_path / f"layer{number}", root)
            layer.run("echo 1 > d/file; echo 2 > d/e/file; echo 3 > rep/file; mkdir -p d/objects rep/objects; "
                      "echo 4 > d/objects/y; echo 5 > rep/objects/y; rm -f d/b rep/x d/e/c")  # fmt: skip
            layer.keep_all()
    finally:
        over.set()
        swapping.join()

    assert tree_of(around) == beside
