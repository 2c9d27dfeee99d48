"""`tui-agent` and `python -m tui_agent`."""

import sys

from tui_agent.cli.own_memory import keep_own_memory
from tui_agent.cli.program import run_program


def main() -> None:
    """Runs the program and exits with its code."""
    keep_own_memory()
    sys.exit(run_program(sys.argv[1:]))


if __name__ == "__main__":
    main()
