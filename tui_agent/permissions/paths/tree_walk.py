"""Walk over everything below a directory, up to a limit. Links are listed and not followed."""

import os
from collections.abc import Callable, Iterator


class TooMuchError(Exception):
    """A directory holds more entries than the limit."""


def entries_below(
    root: str,
    limit: int,
    *,
    enters: Callable[[os.DirEntry[str]], bool] | None = None,
    must_read: bool = False,
) -> Iterator[os.DirEntry[str]]:
    """Yield the entries below a directory, in no order; none if it is a file. Blocks.

    Args:
        root: absolute.
        limit: maximum number of entries.
        enters: True for a yielded directory that is to be entered; None to enter all.
        must_read: an unreadable directory is an error; else it is skipped.

    Raises:
        TooMuchError: there are more entries.
        OSError: a directory cannot be read.
    """
    waiting = [root]
    left = limit
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0:
                        raise TooMuchError(root)
                    yield entry
                    if entry.is_dir(follow_symlinks=False) and (enters is None or enters(entry)):
                        waiting.append(entry.path)
        except NotADirectoryError:
            continue
        except OSError:
            if must_read:
                raise
