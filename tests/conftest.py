"""Settings for every test: no deadlines, the same random cases in every run, a home of its own."""

import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tui_agent.tools import bash_tool, tree_listing, tree_watch

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Properties run each line hundreds of times, which measuring makes twice as long and tells nothing: what is
    covered is what examples cover."""
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker("no_cover")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the homes are. Of thousands in one place, each new numbered directory would cost a look at all others."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, homes: Path) -> Path:
    """A home of its own and no credentials: no test reads or writes the files of the person who runs it."""
    home = Path(tempfile.mkdtemp(dir=homes))
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TUI_AGENT_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Undo what a program that ran inside the test set for the log of the whole process."""
    root = logging.getLogger()
    handlers, level, raised = list(root.handlers), root.level, logging.raiseExceptions
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:], logging.raiseExceptions = handlers, raised
    root.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture(scope="session", autouse=True)
def unhurried_comparisons() -> Iterator[None]:
    """Give comparisons of a tree all the time they need: on a busy machine a short limit would decide the result."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_listing, "LISTING_SECONDS", 60.0)
        patch.setattr(tree_watch, "KEEPING_SECONDS", 60.0)
        patch.setattr(bash_tool, "_DIFF_SECONDS", 60.0)
        yield
