"""A disk that fails on demand; other operations reach the real file."""

import errno
import os
from collections.abc import Callable

from tui_agent.session.journal import Disk


class FailingDisk(Disk):
    """A failing disk. `room`: bytes until it is full; None for unlimited."""

    def __init__(self, *, room: int | None = None, piece: int | None = None) -> None:
        self.room = room
        self.piece = piece
        """Maximum bytes of one write."""
        self.sync_fails = False
        self.cut_fails = False
        self.removed = False
        self.syncs = 0
        self.before_write: Callable[[], None] = lambda: None

    def write(self, descriptor: int, data: memoryview) -> int:
        self.before_write()
        size = len(data) if self.piece is None else min(len(data), self.piece)
        if self.room is not None:
            if self.room == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            size = min(size, self.room)
            self.room -= size
        return super().write(descriptor, data[:size])

    def sync(self, descriptor: int) -> None:
        if self.sync_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self.syncs += 1
        super().sync(descriptor)

    def cut(self, descriptor: int, size: int) -> None:
        if self.cut_fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().cut(descriptor, size)

    def links(self, descriptor: int) -> int:
        return 0 if self.removed else super().links(descriptor)
