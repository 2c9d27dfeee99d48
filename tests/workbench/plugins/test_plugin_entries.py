"""Which entry points of installed packages may be used, found without running their code."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workbench.plugins.conftest import Install
from tui_agent.settings import Settings
from tui_agent.workbench.plugins.plugin_entries import (
    find_plugins,
    installed_entries,
    theme_files,
    unknown_references,
)

TRAP = "raise SystemExit('this module was imported')\n"
THEME = 'name = "paper"\n[colors]\nprimary = "#123456"\n'


def problems(root: Path, **settings: Any) -> dict[str, str]:
    """Return the state of each plugin by package, kind and name."""
    return {
        f"{plugin.entry.distribution}:{plugin.entry.kind}:{plugin.entry.name}": "off"
        if plugin.is_disabled
        else plugin.problem
        for plugin in find_plugins(Settings.model_validate(settings), root)
    }


def test_every_kind_is_found_without_running_code(install: Install, tmp_path: Path, site: Path) -> None:
    points = {
        "tools": {"count": "acme:count"},
        "hooks": {"guard": "acme:hooks"},
        "providers": {"echo": "acme:Echo"},
        "themes": {"paper": "acme"},
        "others": {"x": "acme:x"},
    }
    install("acme", points, {"acme/__init__.py": TRAP, "acme/paper.toml": THEME}, version="2.1")

    assert set(problems(tmp_path / "work").values()) == {""}
    assert [(entry.kind, entry.name, entry.version) for entry in installed_entries()] == [
        ("hook", "guard", "2.1"),
        ("provider", "echo", "2.1"),
        ("theme", "paper", "2.1"),
        ("tool", "count", "2.1"),
    ]
    assert {entry.location for entry in installed_entries()} == {site}
    assert theme_files(Settings(), tmp_path / "work") == (site / "acme" / "paper.toml",)


@pytest.mark.parametrize(
    ("disabled", "off"),
    [
        ("Acme_Tools", {"acme-tools:tool:count", "acme-tools:tool:sort"}),
        (["acme.tools:sort"], {"acme-tools:tool:sort"}),
        ("other, nothing", {"other:tool:look"}),
        (["*"], {"acme-tools:tool:count", "acme-tools:tool:sort", "other:tool:look"}),
        ([], set[str]()),
        (["acme", "acme-tools:tool"], set[str]()),
    ],
)
def test_the_settings_turn_packages_and_single_plugins_off(
    disabled: object, off: set[str], install: Install, tmp_path: Path
) -> None:
    install("acme-tools", {"tools": {"count": "acme:c", "sort": "acme:s"}}, {"acme.py": TRAP})
    install("other", {"tools": {"look": "other:look"}}, {"other.py": TRAP})

    states = problems(tmp_path / "work", plugins={"disabled": disabled})

    assert {name for name, state in states.items() if state == "off"} == off
    assert {state for state in states.values() if state != "off"} <= {""}


def test_settings_that_name_no_plugin_are_found(install: Install) -> None:
    install("acme", {"tools": {"count": "acme:c"}}, {"acme.py": TRAP})
    settings = Settings.model_validate({"plugins": {"disabled": ["acme", "acme:count", "acme:sort", "acmee", "*"]}})

    assert unknown_references(settings) == ("acme:sort", "acmee")


@pytest.mark.parametrize("group", ["tools", "providers", "themes"])
def test_of_two_plugins_with_one_name_neither_is_used_until_one_is_off(
    group: str, install: Install, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        target = name if group == "themes" else f"{name}:x"
        install(name, {group: {"same": target}}, {f"{name}/__init__.py": TRAP, f"{name}/same.toml": THEME})

    both = problems(tmp_path / "work")
    one = problems(tmp_path / "work", plugins={"disabled": ["second"]})

    assert [state.partition(",")[0] for state in both.values()] == [
        f"{other} has a {group[:-1]} of this name" for other in ("second", "first")
    ]
    assert list(one.values()) == ["", "off"]


@pytest.mark.parametrize(
    ("group", "name", "target", "problem"),
    [
        ("tools", "bash", "acme:x", "tui-agent has a tool of this name"),
        ("tools", "web_search", "acme:x", "tui-agent has a tool of this name"),
        ("tools", "agent", "acme:x", "tui-agent has a tool of this name"),
        ("tools", "mcp__a__b", "acme:x", "tui-agent has a tool of this name"),
        ("tools", "a b", "acme:x", "the name of a tool has at most 64 letters, digits, _ and -"),
        ("providers", "ollama", "acme:x", "tui-agent knows an endpoint of this name"),
        ("providers", "box", "acme:x", "your settings have an endpoint of this name"),
        ("providers", "a/b", "acme:x", "the name of a provider has letters, digits, -, _ and ."),
        ("themes", "Paper", "acme", "the name of a theme has small letters, digits and -"),
        ("themes", "paper", "acme:PAPER", "its entry point must name a package with the file paper.toml"),
        ("themes", "other", "acme", "acme has no file other.toml"),
        ("themes", "paper", "nowhere", "no module is named nowhere"),
        ("tools", "x", "nowhere.x:y", "no module is named nowhere"),
        ("hooks", "any name", "acme:x", ""),
    ],
)
def test_a_name_that_is_taken_or_wrong_is_the_reason(
    group: str, name: str, target: str, problem: str, install: Install, tmp_path: Path
) -> None:
    install("acme", {group: {name: target}}, {"acme/__init__.py": TRAP, "acme/paper.toml": THEME})

    (found,) = problems(tmp_path / "work", providers={"box": {"base_url": "http://box:1"}}).values()

    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_what_lies_in_the_workspace_is_not_used(install: Install, site: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    install("inside", {"tools": {"a": "inside:a"}}, {"inside.py": TRAP}, folder=work)
    install("editable", {"tools": {"b": "in_work:b"}, "themes": {"paper": "in_work"}}, {})
    (work / "in_work").mkdir()
    (work / "in_work" / "__init__.py").write_text(TRAP, "utf-8")
    (work / "in_work" / "paper.toml").write_text(THEME, "utf-8")
    install("linked", {"tools": {"c": "linked:c"}}, {})
    (site / "linked.py").symlink_to(work / "in_work" / "__init__.py")
    install("partly", {"tools": {"f": "partly.inner:f"}}, {"partly/__init__.py": TRAP})
    (site / "partly" / "inner.py").symlink_to(work / "in_work" / "__init__.py")
    install("claimed", {"tools": {"e": "outside:e"}}, {}, folder=work)
    install("outside", {"tools": {"d": "outside:d"}}, {"outside.py": TRAP})
    sys.path.insert(0, str(work))

    try:
        states = problems(work)
        elsewhere = problems(tmp_path / "elsewhere")
    finally:
        sys.path.remove(str(work))

    in_work = [name for name, state in states.items() if "lies in the workspace" in state]
    assert in_work == [
        *(
            "claimed:tool:e",
            "editable:theme:paper",
            "editable:tool:b",
            "inside:tool:a",
            "linked:tool:c",
            "partly:tool:f",
        )
    ]
    assert states["outside:tool:d"] == ""
    assert set(elsewhere.values()) == {""}


@pytest.mark.parametrize(
    "text", ["[tui_agent.tools]\ngarbage\n", "[tui_agent.tools\n", "\x00tui_agent.tools", "[tui_agent.tools]\n= \n"]
)
def test_damaged_metadata_hides_no_other_package(text: str, install: Install, tmp_path: Path) -> None:
    facts = install("broken", {"tools": {"x": "broken:x"}}, {"broken.py": TRAP})
    install("acme", {"tools": {"count": "acme:c"}}, {"acme.py": TRAP})
    (facts / "entry_points.txt").write_text(text, "utf-8")
    (facts / "METADATA").unlink()

    assert problems(tmp_path / "work")["acme:tool:count"] == ""


@pytest.mark.slow
def test_a_start_without_plugins_imports_nothing_of_them() -> None:
    script = (
        "import sys; from tui_agent.workbench.plugins.plugin_entries import *; from tui_agent.settings import Settings;"
        "from pathlib import Path; before = set(sys.modules); found = find_plugins(Settings(), Path('/nowhere'));"
        "print(found, *sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "()\n"
