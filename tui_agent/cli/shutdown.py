"""How the app and the questions before it end: by an answer, by a signal, and then at once."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, TypeVar

from click.exceptions import Exit

from tui_agent.ui.app.base_app import BaseApp

Answer = TypeVar("Answer")


def run_and_exit(program: Coroutine[Any, Any, int]) -> NoReturn:
    """Runs the app and ends the process with the code it gives.

    Everything is closed once the app is over. What a thread still loads would be waited for, and all there is be looked
    through once more: on a busy machine that takes seconds in which nothing happens.
    """
    with asyncio.Runner() as runner:
        code = runner.run(program)
        logging.shutdown()
        with suppress(OSError):  # The terminal may be gone.
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def run_dialog(app: BaseApp[Answer | None]) -> Answer | None:
    """Asks something before the app itself; None if the person left instead.

    Raises:
        Exit: a signal ended the question, and with it the program.
    """

    async def ask() -> Answer | None:
        with exit_on_signals(app):
            return await app.run_async()

    answer = asyncio.run(ask())
    if app.return_code:
        raise Exit(app.return_code)
    return answer


@contextmanager
def exit_on_signals(app: BaseApp[Answer]) -> Generator[None]:
    """Signals leave the app as its quit key does: what runs is cancelled, the terminal is restored.

    INT comes from outside only: on the terminal `ctrl+c` is a key of the app. The handlers are Python's own and not the
    event loop's: a program that was asleep has to know that it ends before it takes the terminal again.
    """
    loop = asyncio.get_running_loop()

    def leave(number: int, _: FrameType | None) -> None:
        app.abandon_terminal()
        loop.call_soon_threadsafe(app.exit, None, 128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
