"""Exit of the app and of the dialogs before it, by an answer or by a signal."""

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

from tui_agent.prelude import early_start
from tui_agent.ui.app.base_app import BaseApp

Answer = TypeVar("Answer")

_LETHAL = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_THEN_DEFAULT = (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGABRT, signal.SIGALRM, signal.SIGXCPU)
"""Signals that no one sends to quit: the app restores the terminal, and then they act as in any program."""


def run_and_exit(program: Coroutine[Any, Any, int]) -> NoReturn:
    """Run the app and end the process with its exit code, at once.

    The app has closed everything by then. The interpreter's own exit would still wait for threads that import modules,
    and collect garbage once more, which takes seconds on a busy machine.
    """
    with asyncio.Runner() as runner:
        code = runner.run(program)
        early_start.end()
        logging.shutdown()
        with suppress(OSError):  # The terminal may be gone.
            sys.stdout.flush()
            sys.stderr.flush()
        if code - 128 in _THEN_DEFAULT:
            signal.signal(code - 128, signal.SIG_DFL)
            os.kill(os.getpid(), code - 128)
        os._exit(code)


def run_dialog(app: BaseApp[Answer | None]) -> Answer | None:
    """Run a dialog before the app itself and return the answer; None if the user quits.

    Raises:
        Exit: a signal ended the dialog.
    """

    async def ask() -> Answer | None:
        with exit_on_signals(app):
            return await app.run_async()

    # What was typed so far is for the chat: the user has not seen this question.
    early_start.release()
    answer = asyncio.run(ask())
    if app.return_code:
        raise Exit(app.return_code)
    return answer


@contextmanager
def exit_on_signals(app: BaseApp[Answer]) -> Generator[None]:
    """Make signals quit the app as its quit key does: the run is cancelled, and the terminal restored.

    SIGINT comes from other programs only: in the terminal, `ctrl+c` is a key of the app.
    """
    loop = asyncio.get_running_loop()

    def exit_on_signal(number: int, _: FrameType | None) -> None:
        app.abandon_terminal()
        loop.call_soon_threadsafe(app.exit, None, 128 + number)

    before = {number: signal.getsignal(number) for number in (*_LETHAL, *_THEN_DEFAULT)}
    for number in before:
        # Not `loop.add_signal_handler`, which runs later: a suspended program that is resumed only to exit would take
        # the terminal before it knows.
        signal.signal(number, exit_on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
