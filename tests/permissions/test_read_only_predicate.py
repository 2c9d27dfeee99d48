"""Read-only commands, as the bash tool recognises them."""

from tui_agent.permissions import is_read_only_command

from .conftest import Desk


def test_reading_inside_the_workspace_is_read_only(desk: Desk) -> None:
    assert is_read_only_command("git status && ls -la | head", desk.root)
    assert is_read_only_command("", desk.root)
    assert not is_read_only_command("cat /etc/hostname", desk.root)
    assert not is_read_only_command("make", desk.root)
    assert not is_read_only_command("ls \x00", desk.root)
    assert not is_read_only_command("echo \ud800", desk.root)


def test_paths_that_may_be_read_like_the_workspace(desk: Desk) -> None:
    kept = desk.root.parent / "outside"

    assert not is_read_only_command(f"cat {kept}/secret.txt && git status", desk.root)
    assert is_read_only_command(f"cat {kept}/secret.txt && git status", desk.root, (kept,))
