"""Services beside a run, such as a file watch. An error ends the service, never the run or the program."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeGuard, TypeVar

from .errors import TuiAgentError

T = TypeVar("T")

_LONGEST_REASON = 300
_LOG = logging.getLogger(__name__)


async def run_service(service: str, work: Awaitable[T], failed: Callable[[str], object] | None = None) -> T | None:
    """Run a service or an optional step and return its result; on an error report it and return None.

    Errors other than `TuiAgentError` are bugs and are logged with their traceback. `failed` gets the reason, one line
    without a full stop. A cancellation passes through.
    """
    try:
        return await work
    except Exception as error:
        if not isinstance(error, TuiAgentError):
            _LOG.error("%s failed", service, exc_info=error)
        if failed is not None:
            failed(reason_of(error))
        return None


def reason_of(error: Exception) -> str:
    """Return the reason of an error in one line; of a group, that of its first error."""
    error = first_error(error)
    if isinstance(error, TuiAgentError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__


def first_error(error: Exception) -> Exception:
    """Return the first error of a group, however deeply nested; another error as it is."""
    return first_error(error.exceptions[0]) if _is_group(error) else error


def _is_group(error: Exception) -> TypeGuard[ExceptionGroup[Exception]]:
    return isinstance(error, ExceptionGroup)
