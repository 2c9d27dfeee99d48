"""Everything below a directory, up to a limit: links are seen and not followed."""

import os
from collections.abc import Callable, Iterator


class TooMuchError(Exception):
    """There is more below a directory than may be looked at."""


def entries_below(
    root: str,
    limit: int,
    *,
    enters: Callable[[os.DirEntry[str]], bool] | None = None,
    must_read: bool = False,
) -> Iterator[os.DirEntry[str]]:
    """The entries below a directory, in no order; none if it is a file. Blocks.

    Args:
        root: absolute.
        limit: how many entries may be looked at.
        enters: whether to look into a directory that was given out; None: into each.
        must_read: a directory that cannot be read is an error; else it is passed by.

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
