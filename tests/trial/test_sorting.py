"""Sorting of changed paths: caches, ignored trees, packages, rules, links, and the rest in groups."""

import os
import random
import subprocess
from pathlib import Path

import pytest

from tui_agent.protocol.trial import MOST_FILES, KeepSelection
from tui_agent.trial.sorting import PathSorter, may_be_ignored

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


NAMES = ("build", "src", "a.log", "b.LOG", "x y", "#h", "!n", "é", "[z]", "a\\b", "end ", "c.d")


def random_rule(chance: random.Random) -> str:
    """Return a rule about one of the names, with wildcards, escapes, blanks and ends that git cuts off."""
    name = chance.choice(NAMES)
    forms = (name, f"*{name[1:]}", f"{name[:1]}*", f"[{name[0]}]{name[1:]}", f"\\{name}", name.upper(), f"{name} ")
    rule = chance.choice(
        (*forms, name.replace("b", "?", 1), f"{name[:1]}[!q]{name[2:]}", f"{name}\r", f"{name}\0x", "**")
    )
    return chance.choice(("", "", "/", "**/", "src/", "!")) + rule + chance.choice(("", "", "/", "/**"))


def test_git_can_say_of_every_path_that_it_ignores_it(tmp_path: Path) -> None:
    """And not about most others."""
    chance = random.Random(1)
    asked = every = 0
    for number in range(12):
        root = tmp_path / str(number)
        names = {"/".join(chance.choices(NAMES, k=chance.randint(1, 3))) for _ in range(25)}
        for directory in (root, root / "src", root / "build"):
            directory.mkdir(exist_ok=True)
            rules = chance.choice(("\n", "\r\n")).join(random_rule(chance) for _ in range(chance.randint(0, 4)))
            start = chance.choice(("", "\ufeff"))
            (directory / ".gitignore").write_text(f"{start}{rules}\n", "utf-8", newline="")
        outside(root, f"git init -q; git config core.ignorecase {chance.choice(('true', 'false'))}")
        done = subprocess.run(
            ("git", "check-ignore", "-z", "--stdin"),
            cwd=root,
            input=b"".join(os.fsencode(name) + b"\0" for name in names),
            capture_output=True,
            check=False,
        )
        found = may_be_ignored(str(root), sorted(names))
        assert {os.fsdecode(name) for name in done.stdout.split(b"\0") if name} <= {*found}
        asked, every = asked + len(found), every + len(names)
    assert asked < every * 0.7


@pytest.mark.parametrize(
    "setting",
    ["core.excludesFile=/nowhere", "include.path=/nowhere", "includeIf.gitdir:/nowhere/.path=/nowhere", "HEAD", ""],
)
def test_git_has_to_say_if_rules_may_be_elsewhere(workspace: Path, setting: str) -> None:
    """Settings may name more rules, and without a head git reads those of another repository."""
    name, _, value = setting.partition("=")
    outside(workspace, f"git config {name} {value}" if value else f"rm -f .git/{name or 'nothing'}")
    assert may_be_ignored(str(workspace), ["src/a.py"]) == (["src/a.py"] if setting else [])


def test_rules_of_the_user_count(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the usual file, and in one that the user's settings name."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "settings" / "git").mkdir(parents=True)
    (tmp_path / "settings" / "git" / "ignore").write_text("*.usual\n")
    (tmp_path / "named").write_text("*.named\n")
    assert may_be_ignored(str(workspace), ["a.usual", "b.named"]) == ["a.usual"]
    outside(workspace, f"git config --file {tmp_path}/settings/git/config core.excludesFile {tmp_path}/named")
    assert may_be_ignored(str(workspace), ["a.usual", "b.named"]) == ["b.named"]
