"""Shortages of descriptors, threads or memory, reported in one sentence instead of a traceback.

Imported before anything else, and imports almost nothing: the very next import may fail for lack of memory.
"""

import errno
import resource

TYPE_CHECKING = False  # Not imported from `typing`, which takes longer to load than this whole file.

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

FAILED = 1
"""Exit code after a shortage."""

_DESCRIPTORS = "raise it, for example with `ulimit -n 256`"
_MEMORY = "close other programs, or raise the limit (`ulimit -v`)"
OUT_OF_MEMORY = f"not enough memory: {_MEMORY}"
"""Message for a lack of memory."""
NEEDED_MIB = 512
"""Lowest limit on addresses, in MiB, with which a run starts."""


def shortage_in(error: BaseException) -> str | None:
    """Return the message for an error that a shortage caused, however deeply nested; None for any other."""
    return next((text for each in _chain(error, set()) if (text := _message(each)) is not None), None)


def memory_problem() -> str | None:
    """Return the message for a limit on addresses that is too low for a run; None if it is high enough.

    Below it, a library may abort the process, or a thread fail to report its result, so that the run never ends.
    """
    limit = memory_limit()
    if limit is None or limit >= NEEDED_MIB << 20:
        return None
    return (
        f"not enough memory: the address limit is {limit >> 20} MiB, and a run needs {NEEDED_MIB}:"
        f" raise it, for example with `ulimit -v {NEEDED_MIB << 10}`"
    )


def memory_limit() -> int | None:
    """Return the limit on addresses in bytes; None if there is none."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _chain(error: BaseException, seen: set[int]) -> "Iterator[BaseException]":
    """Yield the error, what it groups, and what it was raised from."""
    if id(error) in seen:
        return
    seen.add(id(error))
    yield error
    if is_group(error):
        for member in error.exceptions:
            yield from _chain(member, seen)
    for cause in (error.__cause__, error.__context__):
        if cause is not None:
            yield from _chain(cause, seen)


def is_group(error: BaseException) -> "TypeGuard[BaseExceptionGroup[BaseException]]":
    """Return True if the error is an exception group."""
    return isinstance(error, BaseExceptionGroup)


def _message(error: BaseException) -> str | None:
    text = str(error)
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EMFILE or (number is None and "Too many open files" in text):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return f"too many open files; the limit is {limit}: {_DESCRIPTORS}"
    if number == errno.ENFILE:
        return "the system has too many open files: close other programs"
    if isinstance(error, MemoryError) or number == errno.ENOMEM or _is_unmapped(error, text):
        return OUT_OF_MEMORY
    if isinstance(error, FileNotFoundError) and "No usable temporary directory" in text:
        return "cannot create a temporary file: free some space, or set TMPDIR to a writable directory"
    if isinstance(error, RuntimeError) and "can't start new thread" in text:
        return f"cannot start another thread: {_MEMORY} or the limit of processes (`ulimit -u`)"
    return None


def _is_unmapped(error: BaseException, text: str) -> bool:
    """Return True if a library could not be loaded for lack of memory, or failed without an exception."""
    if isinstance(error, SystemError):
        return "without exception set" in text or "without setting an exception" in text
    return isinstance(error, ImportError) and ("failed to map" in text or "annot allocate memory" in text)
