"""Table tests: one item for all rows of a table, whose failures are reported together.

An item of pytest costs milliseconds of its own (fixtures, reports, messages between processes), more than most rows
take. Use `pytest.mark.parametrize` where rows need fixtures of their own or take long, `table` everywhere else.
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOR_EACH_ROW = ("tmp_path", "monkeypatch")
"""Fixtures that each row gets anew; it shares all others with the rows before it."""

Test = Callable[..., Any]


def table(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Call the decorated test for every row, like `parametrize`, in one item; several tables are combined.

    Every row is tried, and the failure of the item shows each one that failed, with its number and values.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table_rows = [(row,) if len(columns) == 1 else tuple(row) for row in rows]
    assert table_rows, "a table without rows tests nothing"
    assert all(len(row) == len(columns) for row in table_rows), f"every row needs {len(columns)} values"

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failures = Failures(len(table_rows))
            for number, row in enumerate(table_rows):
                with failures.recorded(number, row), row_fixtures(number, fixtures) as own:
                    test(**own, **dict(zip(columns, row, strict=True)))
            failures.report()

        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failures = Failures(len(table_rows))
            for number, row in enumerate(table_rows):
                with failures.recorded(number, row), row_fixtures(number, fixtures) as own:
                    # A task of its own: what a row sets in context variables ends with it.
                    await asyncio.create_task(as_coroutine(test(**own, **dict(zip(columns, row, strict=True)))))
            failures.report()

        signature = inspect.signature(test)
        others = [value for name, value in signature.parameters.items() if name not in columns]
        decorated = run_async if inspect.iscoroutinefunction(test) else run
        decorated.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return decorated

    return decorate


async def as_coroutine(result: Awaitable[None]) -> None:
    """Await the result of an async test."""
    await result


@contextmanager
def row_fixtures(number: int, fixtures: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the fixtures for one row: those of `FOR_EACH_ROW` are its own."""
    own = dict(fixtures)
    if isinstance(directory := own.get("tmp_path"), Path):
        own["tmp_path"] = directory / f"row{number}"
        own["tmp_path"].mkdir()
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        yield own


class Failures:
    """Failed rows of one table."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._failed: list[str] = []
        self._skipped = 0

    @contextmanager
    def recorded(self, number: int, row: tuple[Any, ...]) -> Iterator[None]:
        """Record a failure inside and continue after it."""
        try:
            yield
        except pytest.skip.Exception:
            self._skipped += 1
        except (Exception, pytest.fail.Exception) as error:
            shown = pytest.ExceptionInfo.from_exception(error).getrepr(style="short")
            self._failed.append(f"row {number}: {', '.join(map(repr, row))}\n{shown}")

    def report(self) -> None:
        """Fail with all failed rows, if there are any; skip if every row did."""
        if self._failed:
            text = "\n\n".join(self._failed)
            pytest.fail(f"{len(self._failed)} of {self._rows} rows failed\n{text}", pytrace=False)
        if self._skipped == self._rows:
            pytest.skip("every row was skipped")
