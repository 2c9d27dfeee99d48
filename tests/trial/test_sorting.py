"""Sorting of changed paths: caches, ignored trees, packages, rules, links, and the rest in groups."""

from pathlib import Path

import pytest

from tui_agent.protocol.trial import MOST_FILES, KeepSelection
from tui_agent.trial.sorting import PathSorter

from .layers import RealLayer, outside

CASES: dict[str, dict[str, tuple[str, str]]] = {
    "mkdir -p src/__pycache__ .pytest_cache; touch src/__pycache__/x.pyc .pytest_cache/v src/new": {
        "src/new": ("workspace", "")
    },
    "rm -r src": {"src/a.py": ("workspace", ""), "src/__pycache__/old.pyc": ("workspace", "")},
    "mkdir -p build/x; touch build/x/1 build/2 a.log": {
        "build/x/1": ("ignored", "build/"),
        "build/2": ("ignored", "build/"),
        "a.log": ("ignored", ""),
    },
    "mkdir -p .venv/lib vendor/v; touch .venv/pyvenv.cfg .venv/lib/sitecustomize.py vendor/v/x env/new": {
        ".venv/pyvenv.cfg": ("packages", ".venv/"),
        ".venv/lib/sitecustomize.py": ("packages", ".venv/"),
        "vendor/v/x": ("packages", "vendor/"),
        "env/new": ("packages", "env/"),
    },
    "mkdir -p node_modules/a; touch node_modules/a/b": {"node_modules/a/b": ("protected", "node_modules/")},
    "touch secrets/key mine.lock": {"secrets/key": ("refused", ""), "mine.lock": ("protected", "")},
    "ln -s src one; ln -s one/../../.. two; ln -s ../src src/three; ln -s $PWD/src four": {
        "one": ("workspace", ""),
        "two": ("refused", ""),
        "src/three": ("workspace", ""),
        "four": ("workspace", ""),
    },
}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with an environment and a cache."""
    place = tmp_path / "workspace"
    place.mkdir()
    outside(
        place,
        "git init -q; printf 'build/\\n*.log\\n' > .gitignore; mkdir -p src/__pycache__ secrets env; "
        "touch env/pyvenv.cfg src/a.py src/__pycache__/old.pyc secrets/old; "
        "git add src/a.py .gitignore; git commit -qm First",
    )
    return place


def sorter_of(workspace: Path) -> PathSorter:
    """Return a sorter with a protected name and a denied directory."""
    return PathSorter(
        workspace,
        is_protected=lambda path: path.endswith(".lock"),
        is_denied=lambda path: path.startswith("secrets/"),
        is_trusted=True,
    )


@pytest.mark.parametrize("command", CASES)
def test_each_path_has_its_sort(workspace: Path, tmp_path: Path, command: str) -> None:
    """A refused path is not kept although it is named."""
    layer = RealLayer.over(tmp_path / "layer", workspace, sorter=sorter_of(workspace))
    layer.run(command)
    changes = layer.changes()
    assert {change.path: (change.sort, change.tree) for change in changes.changes} == CASES[command]
    refused = {path for path, (sort, _) in CASES[command].items() if sort == "refused"}
    report = layer.keep(KeepSelection(paths=tuple(CASES[command])), changes)
    assert set(report.problems) == refused
    assert not any((workspace / path).exists() for path in refused)


def test_many_files_become_trees_that_are_kept_by_name(workspace: Path, tmp_path: Path) -> None:
    """Each tree has one sort, and protected files stay visible one by one."""
    layer = RealLayer.over(tmp_path / "layer", workspace, sorter=sorter_of(workspace))
    layer.run("touch src/{1..400}.py zz.lock; mkdir build; touch build/{1..300}")
    changes = layer.changes()
    single = [change for change in changes.changes if not change.tree]
    assert len(single) == MOST_FILES
    assert "zz.lock" in {change.path for change in single}
    trees = {(change.tree, change.sort) for change in changes.changes if change.tree}
    assert trees == {("src/", "workspace"), ("build/", "ignored")}
    layer.keep(KeepSelection(paths=("build/",)), changes)
    assert len(list((workspace / "build").iterdir())) == 300
    assert not (workspace / "src/1.py").exists()
