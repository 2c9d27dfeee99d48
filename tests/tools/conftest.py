"""Fixtures: a workspace in a temporary directory, and the two search engines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.programs import development_program, path_with, path_without
from tui_agent.tools.processes.orphans import become_subreaper, resign_as_subreaper
from tui_agent.tools.search.search_engine import Ripgrep, find_ripgrep
from tui_agent.tools.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Workspace:
    return Workspace(root, spool_dir=tmp_path / "spool")


@pytest.fixture
def ripgrep() -> Ripgrep:
    """ripgrep, a development dependency."""
    return Ripgrep(development_program("rg"))


@pytest.fixture(params=["ripgrep", "python"])
def engine(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    root: Path,
) -> Ripgrep | None:
    """Each search engine in turn: ripgrep on the PATH, and Python with ripgrep hidden (then None)."""
    directory = tmp_path_factory.mktemp("programs")
    if request.param == "ripgrep":
        monkeypatch.setenv("PATH", path_with(development_program("rg"), directory))
    else:
        monkeypatch.setenv("PATH", path_without("rg", directory))
    found = find_ripgrep(root)
    assert (found is not None) == (request.param == "ripgrep")
    return found


@pytest.fixture
def subreaper() -> Iterator[None]:
    """Let this process adopt orphans, as the program does."""
    assert become_subreaper()
    yield
    resign_as_subreaper()
