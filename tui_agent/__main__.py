"""`tui-agent` and `python -m tui_agent`."""

import os
import sys

from tui_agent.cli.shortage import FAILED, shortage_in


def leave_if_short(error: BaseException) -> None:
    """End the process with one sentence if a shortage of descriptors, threads or memory caused the error."""
    if words := shortage_in(error):
        # Not by `sys.exit`: the interpreter's own shutdown could fail for the same shortage.
        os.write(2, f"tui-agent: {words}\n".encode())
        os._exit(FAILED)


try:
    from tui_agent.cli.own_memory import keep_own_memory
    from tui_agent.cli.standard_streams import hold_standard_streams, keep_faults_off_terminal
except BaseException as error:
    leave_if_short(error)
    raise


def main() -> None:
    """Runs the program and exits with its code."""
    try:
        keep_own_memory()
        hold_standard_streams()
        keep_faults_off_terminal()
        sys.exit(run_program(sys.argv[1:]))
    except BaseException as error:
        leave_if_short(error)
        raise


def run_program(arguments: list[str]) -> int:
    """Load the command line and run it; return the exit code."""
    # Imported here so that `main` reports a shortage that the import meets.
    from tui_agent.cli.program import run_program as run

    return run(arguments)


if __name__ == "__main__":
    main()
