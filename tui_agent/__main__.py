"""Entry point of `tui-agent` and `python -m tui_agent`."""

import os
import sys

from tui_agent.cli.process.shortage import FAILED, OUT_OF_MEMORY, shortage_in

TYPE_CHECKING = False

if TYPE_CHECKING:
    from types import TracebackType


def report_uncaught(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Report an uncaught error: one sentence if a shortage of descriptors, threads or memory caused it."""
    try:
        words = shortage_in(error)
    except (MemoryError, SystemError):
        # The report met the same shortage.
        words = OUT_OF_MEMORY
    if words:
        # Not by `sys.exit`: the interpreter's own shutdown could fail for the same shortage.
        os.write(2, f"tui-agent: {words}\n".encode())
        os._exit(FAILED)
    sys.__excepthook__(kind, error, trace)


# A hook rather than a handler: without memory, the interpreter may lose an exception where a handler would catch it.
sys.excepthook = report_uncaught


def main() -> None:
    """Run the program and exit with its code."""
    # Each import follows what must not wait for it; a shortage that one meets is reported by the hook.
    from tui_agent.prelude.early_start import begin, end

    begin(sys.argv[1:])
    try:
        code = run_program(sys.argv[1:])
    finally:
        end()
    sys.exit(code)


def run_program(arguments: list[str]) -> int:
    """Set up the process, load the command line and run it; return the exit code."""
    from tui_agent.cli.process.process_setup import (
        begin_start,
        deny_memory_access,
        log_uncaught_errors,
        open_missing_streams,
    )

    begin_start()
    deny_memory_access()
    open_missing_streams()
    log_uncaught_errors()
    from tui_agent.cli.command_line import run_program as run

    return run(arguments)


if __name__ == "__main__":
    main()
