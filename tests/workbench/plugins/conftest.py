"""Packages with entry points, as pip leaves them in a directory of the module path."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tui_agent.workbench.plugins.plugin_entries import installed_entries

Install: TypeAlias = Callable[..., Path]
"""Function that installs a package: its name, its entry points by group, and its files."""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a directory of the module path; modules imported from it are forgotten afterwards."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    installed_entries.cache_clear()
    before = set(sys.modules)
    yield folder
    installed_entries.cache_clear()
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def install(site: Path) -> Install:
    def installed(
        name: str,
        points: Mapping[str, Mapping[str, str]],
        files: Mapping[str, str],
        *,
        version: str = "1.0",
        folder: Path | None = None,
        **more: Any,
    ) -> Path:
        folder = folder or site
        for path, text in files.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        lines = [
            line
            for group, entries in points.items()
            for line in (f"[tui_agent.{group}]", *(f"{key} = {target}" for key, target in entries.items()))
        ]
        facts = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        facts.mkdir(parents=True, exist_ok=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
        (facts / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
        (facts / "RECORD").write_text(more.get("record", "\n".join(files)), "utf-8")
        installed_entries.cache_clear()
        importlib.invalidate_caches()
        return facts

    return installed
