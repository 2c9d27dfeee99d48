"""Contains errors of single widgets: each is reported and logged once, and the run continues.

An error in drawing says nothing about the run. Ending the app during a run would cost the user more than a wrong panel.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

Drawn = TypeVar("Drawn")
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_LOG = logging.getLogger(__name__)


def call_or_fallback(do: Callable[[], Drawn], instead: Callable[[Exception], Drawn]) -> Drawn:
    """Return the result of `do`, or of `instead` with the exception that `do` raised."""
    try:
        return do()
    except Exception as fault:
        return instead(fault)


class ErrorBoundary:
    """Handles the exceptions of widgets and folds."""

    def __init__(self, tell: Callable[[str], object], log_file: Path | None) -> None:
        """Show errors with `tell`; without a log file exceptions pass, which ends the app, as tests want it."""
        self._tell = tell
        self._log_file = log_file
        self._reported: set[tuple[str, type[Exception]]] = set()

    def call(
        self, method: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result | None:
        """Call a method of one part; if it raises an exception, contain that and return None."""
        try:
            return method(*args, **kwargs)
        except Exception as error:
            self.contain(getattr(method, "__self__", method), error)
            return None

    def contain(self, part: object, error: Exception) -> None:
        """Report and log the error of one part; the same kind of error in the same part once only.

        Raises:
            Exception: the error itself, if there is no log file.
        """
        if self._log_file is None:
            raise error
        name, kind = type(part).__name__, type(error)
        if (name, kind) in self._reported:
            return
        self._reported.add((name, kind))
        _LOG.error("%s could not show something", name, exc_info=error)
        self._tell(
            f"Part of the screen failed ({name}, {kind.__name__}) and may show something wrong. "
            f"The run continues and the session is saved. Details: {self._log_file}"
        )

    def exit_message(self, error: Exception) -> str | None:
        """Log an error that ends the app, and return the message to print; None if there is no log file."""
        if self._log_file is None:
            return None
        _LOG.critical("the screen had to end", exc_info=error)
        return (
            f"tui-agent: the screen failed ({type(error).__name__}) and had to close. The session is saved; "
            f"tui-agent --continue resumes it. Details: {self._log_file}"
        )
