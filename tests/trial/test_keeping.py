"""Reading, sorting and keeping of real layers: the same tree as without a layer, and only what was named."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_agent.protocol.trial import KeepSelection

from .layers import RealLayer, everything, outside, tree_of

START = (
    "mkdir -p d/e emptydir rep; echo a>a; echo b>d/b; echo c>d/e/c; ln -s a l; echo x>rep/x; echo z>tomode; echo m>mv"
)
NEVER_KEPT = {"pipe", "out", "setuid"}

COMMANDS = (
    "echo new > a; echo more >> d/b",
    "rm -r d; mkdir d; echo q > d/q",
    "rm mv; mkdir mv; rm -r rep; echo f > rep",
    "rm mv; mkdir -p mv/x; echo 1 > mv/x/y; rm -r d rep",
    "chmod 755 tomode; chmod 711 d d/e; mv tomode tomode2; chmod 000 d/b",
    "mkdir new; mv a new/a; mv d/b new/b",
    "mkdir -p nn/oo pp; rmdir emptydir; ln -sf b l; ln -s d/e inner",
    "mkdir -p closed/x; echo y > closed/x/y; chmod 500 closed/x; chmod 500 closed",
    "touch a; cp a b; ln b b2; truncate -s 20M sparse; printf x >> sparse",
    "mv a $'odd\\nname'; mv l $'odd \\xff'; echo >> $'odd\\nname'",
    "mkfifo pipe; ln -s /etc out; ln -s ../.. d/out; echo 1 > setuid; chmod 4755 setuid; echo 2 > kept",
    "rm -rf * ; ls -A",
    "rm l; mkdir l; echo 1 > l/in; rm -r d; ln -s rep d",
)


@pytest.fixture(params=["bubblewrap", "unshare"])
def is_second_way(request: pytest.FixtureRequest) -> bool:
    """Layers are mounted by bubblewrap, or by `unshare` before it."""
    return request.param == "unshare"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small workspace."""
    place = tmp_path / "workspace"
    place.mkdir()
    outside(place, START)
    return place


@pytest.mark.parametrize("command", COMMANDS)
def test_keeping_everything_equals_running_outside(
    workspace: Path, tmp_path: Path, command: str, is_second_way: bool
) -> None:
    """All but what is never kept; before the answer nothing changed."""
    other = tmp_path / "other"
    shutil.copytree(workspace, other, symlinks=True)
    start = tree_of(workspace)
    layer = RealLayer.over(tmp_path / "layer", workspace)
    layer.run(command, second_way=is_second_way)
    changes = layer.changes()
    assert changes.problem == ""
    assert tree_of(workspace) == start
    assert layer.keep(everything(changes), changes).problems == {}
    outside(other, command)
    expected = {path: what for path, what in tree_of(other).items() if os.path.basename(path) not in NEVER_KEPT}
    assert tree_of(workspace) == expected
    refused = {change.path for change in changes.changes if change.sort == "refused"}
    assert refused == {path for path in tree_of(other) if os.path.basename(path) in NEVER_KEPT}


MEANWHILE: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "changed": ("echo 1 > a", lambda place: (place / "a").write_text("user"), "a"),
    "replaced": ("echo 1 > a", lambda place: (place / "mv").rename(place / "a"), "a"),
    "deleted": ("echo 1 >> a", lambda place: (place / "a").unlink(), "a"),
    "made a directory": ("echo 1 > a", lambda place: ((place / "a").unlink(), (place / "a").mkdir()), "a"),
    "made a directory with files": (
        "echo 1 > a",
        lambda place: ((place / "a").unlink(), (place / "a").mkdir(), (place / "a/new").touch()),
        "a",
    ),
    "replaced where a mode changed": ("chmod +x a", lambda place: (place / "mv").rename(place / "a"), "a"),
    "created": ("echo 1 > new", lambda place: (place / "new").write_text("user"), "new"),
    "created in a deleted directory": ("rm -r d", lambda place: (place / "d/new").write_text("user"), "d/new"),
    "deleted here, changed there": ("rm a", lambda place: (place / "a").write_text("user"), "a"),
}


@pytest.mark.parametrize("case", MEANWHILE)
def test_what_changed_meanwhile_is_a_conflict(workspace: Path, tmp_path: Path, case: str) -> None:
    """Only an answer that names the file overwrites it, whether it changed before the question or after it."""
    command, change, path = MEANWHILE[case]
    for number, is_before in enumerate((True, False)):
        place = tmp_path / f"place{number}"
        shutil.copytree(workspace, place, symlinks=True)
        layer = RealLayer.over(tmp_path / f"layer{number}", place)
        layer.run(command)
        if is_before:
            change(place)
        changes = layer.changes()
        if not is_before:
            change(place)
        start = tree_of(place)
        conflicts = {one.path: bool(one.conflict) for one in changes.changes}
        report = layer.keep(everything(changes), changes)
        if is_before:
            assert conflicts[path]
        if is_before or path in conflicts:
            assert path in report.problems
        assert tree_of(place).get(path) == start.get(path)


def test_an_answer_overwrites_a_conflict(workspace: Path, tmp_path: Path) -> None:
    """The content before is the one that is overwritten."""
    layer = RealLayer.over(tmp_path / "layer", workspace)
    layer.run("echo 1 > a")
    (workspace / "a").write_text("user")
    report = layer.keep(KeepSelection(paths=("a",), overwrite=("a",)))
    assert (workspace / "a").read_text() == "1\n"
    assert [file.before for file in report.files] == [b"user"]


def test_a_link_on_the_way_leads_nowhere(workspace: Path, tmp_path: Path) -> None:
    """A directory that becomes a link after the question does not lead a kept file out."""
    layer = RealLayer.over(tmp_path / "layer", workspace)
    layer.run("echo 1 > d/b; echo 2 > d/new; mkdir d/f; echo 3 > d/f/x; rm d/e/c")
    changes = layer.changes()
    away = tmp_path / "away"
    (workspace / "d").rename(away)
    (workspace / "d").symlink_to(away)
    start = tree_of(away)
    report = layer.keep(everything(changes), changes)
    assert set(report.problems) == {"d/b", "d/new", "d/f/x", "d/e/c"}
    assert tree_of(away) == start


def test_a_touched_or_rewritten_file_counts_by_its_content(workspace: Path, tmp_path: Path) -> None:
    """A file that was copied up but not changed is not listed."""
    layer = RealLayer.over(tmp_path / "layer", workspace)
    layer.run("touch a d/b; cp mv x; cat x > mv; rm x; touch -h l; rm tomode; echo z > tomode; mkdir t; rmdir t")
    assert layer.changes().changes == ()
