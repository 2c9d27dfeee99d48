"""Entry point of `tui-agent` and `python -m tui_agent`."""

import os
import sys

from tui_agent.cli.shortage import FAILED, shortage_in


def exit_on_shortage(error: BaseException) -> None:
    """End the process with one sentence if a shortage of descriptors, threads or memory caused the error."""
    if words := shortage_in(error):
        # Not by `sys.exit`: the interpreter's own shutdown could fail for the same shortage.
        os.write(2, f"tui-agent: {words}\n".encode())
        os._exit(FAILED)


try:
    from tui_agent.cli.process_setup import deny_memory_access, log_uncaught_errors, open_missing_streams
except BaseException as error:
    exit_on_shortage(error)
    raise


def main() -> None:
    """Run the program and exit with its code."""
    try:
        deny_memory_access()
        open_missing_streams()
        log_uncaught_errors()
        sys.exit(run_program(sys.argv[1:]))
    except BaseException as error:
        exit_on_shortage(error)
        raise


def run_program(arguments: list[str]) -> int:
    """Load the command line and run it; return the exit code."""
    # Imported here so that `main` reports a shortage that the import meets.
    from tui_agent.cli.command_line import run_program as run

    return run(arguments)


if __name__ == "__main__":
    main()
