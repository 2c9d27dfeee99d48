"""Services beside a run, such as watching files. An error ends the service, never the run or the program."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeGuard, TypeVar

from .errors import TuiAgentError

T = TypeVar("T")

_LONGEST_REASON = 300
_LOG = logging.getLogger(__name__)


async def run_service(service: str, work: Awaitable[T], failed: Callable[[str], object] | None = None) -> T | None:
    """Run a service, or a step that a run can do without, and return its result; report a failure and return None.

    Only `TuiAgentError` is raised on purpose; any other error is also logged with its traceback.

    Args:
        service: its name in the log.
        work: the service; cancelling it passes through.
        failed: takes the reason in a few words, without a full stop.
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
    """Return one line that says what failed: of a group its first error, of a system error its own words."""
    if _is_group(error):
        return reason_of(error.exceptions[0])
    if isinstance(error, TuiAgentError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())[:_LONGEST_REASON] or type(error).__name__


def _is_group(error: Exception) -> TypeGuard[ExceptionGroup[Exception]]:
    return isinstance(error, ExceptionGroup)
