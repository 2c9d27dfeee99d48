"""Command lines of the user's settings: their output has a limit, and their input may stay unread."""

import signal

import pytest

from tui_agent.workbench.user_commands import MOST_BYTES, run_line


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("cat; echo two >&2; exit 3", (3, "given", "two\n")),
        ("exec 0<&-; echo done", (0, "done\n", "")),
        ("yes", (-signal.SIGKILL, ("y\n" * MOST_BYTES)[:MOST_BYTES], "")),
        ("echo first; yes >&2", (-signal.SIGKILL, "first\n", ("y\n" * MOST_BYTES)[:MOST_BYTES])),
    ],
)
async def test_the_output_of_a_command_line_is_read_up_to_a_limit(command: str, found: tuple[int, str, str]) -> None:
    assert await run_line(command, 60.0, given=b"given") == found


async def test_a_command_line_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        await run_line("sleep 60", 0.1)
