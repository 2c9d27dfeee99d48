"""Settings for every test: no deadlines, the same random cases in every run, a separate home, and automatic marks."""

import functools
import gc
import importlib
import logging
import pkgutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from coverage import Coverage
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests.support.examples import DAILY, IS_LONG
from tests.support.terminal import Terminal
from tui_agent.settings import Locations
from tui_agent.tools import command_watch, tree_watch
from tui_agent.tools.search import tree_listing

settings.register_profile(
    "long", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("short", settings.get_profile("long"), max_examples=DAILY)
settings.load_profile("long" if IS_LONG else "short")

pytest_plugins = ("tests.support.cpu_time", "tests.support.forked_tests")

REPEATING = (
    "test_opaque_command_checks",
    "test_stop_and_abort",
)
"""Modules with hundreds of commands or runs that take branches which other tests take, too; measuring triples their
time."""


class Measurement:
    """Plugin that measures coverage in the phases of tests that count; it would double the time of everything else."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage

    def pytest_collection_finish(self) -> None:
        """Forget what functions kept while the tests were collected: their lines have not been measured."""
        sources = tuple(f"{package}." for package in self._coverage.config.source)
        for module in [module for name, module in sys.modules.items() if f"{name}.".startswith(sources)]:
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()

    def _measure(self, item: pytest.Item) -> Generator[None, object, object]:
        if not counts_for_coverage(item):
            return (yield)
        self._coverage.start()
        try:
            return (yield)
        finally:
            self._coverage.stop()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._measure(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._measure(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        return (yield from self._measure(item))


def counts_for_coverage(item: pytest.Item) -> bool:
    """Return True if the test takes branches that no other takes; a property runs the same lines again and again."""
    return item.path.stem not in REPEATING and item.get_closest_marker("property") is None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> Generator[None, object, object]:
    """Measure coverage only where `Measurement` does, apart from the import of the measured modules."""
    plugin = session.config.pluginmanager.getplugin("_cov")
    if plugin is None or plugin.cov_controller is None:
        return (yield)
    result = yield
    coverage = plugin.cov_controller.cov
    for package in coverage.config.source:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            importlib.import_module(module.name)
    coverage.stop()
    # Otherwise each start would search everything imported for modules that were imported too early.
    coverage._warn_preimported_source = False
    session.config.pluginmanager.register(Measurement(coverage))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while the tests are collected, where there is little; it takes a quarter of that time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exempt everything that is loaded by now from garbage collection, and collect less often.

    Thousands of collected tests make each full collection slow; without this they take a fifth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by what they use: `property`, `snapshot` and `pty`.

    Tests marked `long` run only in `.ci/long`.
    """
    if not IS_LONG and (long := [item for item in items if item.get_closest_marker("long")]):
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        if is_hypothesis_test(item.obj):
            item.add_marker("property")
        if "snap_compare" in item.fixturenames:
            item.add_marker("snapshot")
        room = item.path.relative_to(Path(__file__).parent).parts[0]
        if room == "e2e" or any(value is Terminal for value in vars(item.module).values()):
            item.add_marker("pty")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of all homes. Numbered directories would be slow: each new one searches thousands."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, homes: Path) -> Path:
    """Set a new home without credentials, so that no test reads or writes the files of the user who runs it."""
    home = Path(tempfile.mkdtemp(dir=homes))
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TUI_AGENT_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    # Otherwise results would depend on the machine: with `auto`, commands run in the sandbox where it works.
    monkeypatch.setenv("TUI_AGENT_SANDBOX", "off")
    return home


@pytest.fixture
def locations(tmp_path: Path) -> Locations:
    """Directories of a user without any files."""
    return Locations(tmp_path / "config", tmp_path / "state")


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """Restore the logging configuration, which a program that runs inside the test may change."""
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
    """Raise the time limits of tree comparisons, since on a busy machine a short limit would decide the result."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_listing, "LISTING_SECONDS", 60.0)
        patch.setattr(tree_watch, "KEEPING_SECONDS", 60.0)
        patch.setattr(command_watch, "_DIFF_SECONDS", 60.0)
        yield
