"""Prompts and drafts of a project: kept in private files, bounded, and offered after a crash only."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tui_agent.workbench.sessions.prompt_store import (
    FOLDER,
    MAX_PROMPTS,
    MOST_COMMANDS,
    MOST_USES,
    USES,
    PromptStore,
    forget_session,
)


def gone() -> int:
    """Return the id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


async def test_prompts_are_found_at_the_next_start_the_newest_first(tmp_path: Path) -> None:
    store = PromptStore(tmp_path / "sessions", tmp_path)
    for text in ("fix price", "list files", "fix price", "Fix\nthe docs"):
        await store.add(text, "")
    later = PromptStore(tmp_path / "sessions", tmp_path)

    assert await later.find("fix") == ("Fix\nthe docs", "fix price")
    assert await later.find("") == ("Fix\nthe docs", "fix price", "list files")
    assert await PromptStore(tmp_path / "sessions", tmp_path / "other").find("") == ()


async def test_prompts_are_found_before_commands_but_a_path_is_a_prompt(tmp_path: Path) -> None:
    store = PromptStore(tmp_path / "sessions", tmp_path)
    for text in ("fix price", "/home/x is broken", *("/model", "/cost", "/help", "/mode plan"), "list files"):
        await store.add(text, "")

    assert await store.find("") == (
        *("list files", "/home/x is broken", "fix price"),
        *("/mode plan", "/help", "/cost", "/model"),
    )


async def test_uses_of_commands_are_counted_for_the_user_and_stay_small(tmp_path: Path) -> None:
    store = PromptStore(tmp_path / "sessions", tmp_path)
    for name in ("cost", "help", "cost"):
        await store.count_command(name)
    other = PromptStore(tmp_path / "sessions", tmp_path / "other")
    assert await other.command_uses() == {"cost": 2, "help": 1}

    path = tmp_path / "sessions" / FOLDER / USES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text(json.dumps({"cost": MOST_USES, "help": 9, "once": 1, "wrong": "x"}))
    await other.count_command("cost")
    assert await store.command_uses() == {"cost": (MOST_USES + 1) // 2, "help": 4}

    for number in range(MOST_COMMANDS + 5):
        await store.count_command(f"own-{number}")
    assert len(await store.command_uses()) == MOST_COMMANDS
    path.write_text("{damaged")
    assert await store.command_uses() == {}


async def test_without_a_session_nothing_is_written(tmp_path: Path) -> None:
    store = PromptStore(None, tmp_path)
    await store.add("secret", "")
    await store.save_draft("draft")

    assert await store.find("") == ("secret",)
    assert await store.earlier_draft() == ""
    assert list(tmp_path.iterdir()) == []


async def test_only_the_newest_prompts_are_kept_and_damaged_lines_are_skipped(tmp_path: Path) -> None:
    store = PromptStore(tmp_path, tmp_path)
    await store.add("first", "")
    (path,) = (tmp_path / FOLDER).iterdir()
    lines = [json.dumps(f"prompt {number}") for number in range(2 * MAX_PROMPTS)]
    path.write_text("\n".join([*lines, "{damaged", json.dumps({"no": "text"}), json.dumps("last")]) + "\n")

    found = await PromptStore(tmp_path, tmp_path).find("")
    assert found[:2] == ("last", f"prompt {2 * MAX_PROMPTS - 1}")
    assert len(path.read_text().splitlines()) <= MAX_PROMPTS


@pytest.mark.slow
async def test_a_draft_is_offered_after_a_crash_only(tmp_path: Path) -> None:
    store = PromptStore(tmp_path, tmp_path)
    await store.save_draft("half a sentence")
    (path,) = (tmp_path / FOLDER).glob("*.draft")
    assert await PromptStore(tmp_path, tmp_path).earlier_draft() == "", "this program still runs"

    crashed = path.with_name(path.name.replace(str(os.getpid()), str(gone())))
    path.rename(crashed)
    again = PromptStore(tmp_path, tmp_path)
    assert await again.earlier_draft() == "half a sentence"
    assert not crashed.exists()
    assert await PromptStore(tmp_path, tmp_path).find("") == ("half a sentence",), "it can be searched from now on"
    assert await PromptStore(tmp_path, tmp_path).earlier_draft() == ""

    await again.save_draft("more")
    again.forget_draft()
    assert list((tmp_path / FOLDER).glob("*.draft")) == []
    await again.save_draft("more")
    await again.save_draft(" ")
    assert list((tmp_path / FOLDER).glob("*.draft")) == []


def journal(sessions_dir: Path, session_id: str) -> Path:
    """Create the journal of a session."""
    sessions_dir.mkdir(exist_ok=True)
    path = sessions_dir / f"{session_id}.jsonl"
    path.touch()
    return path


async def test_private_commands_are_not_stored_and_those_of_earlier_versions_are_removed(tmp_path: Path) -> None:
    store = PromptStore(tmp_path, tmp_path)
    await store.add("!make test", "")
    await store.add(" !!echo $TOKEN", "")
    await store.save_draft("!!echo $TOKEN")
    assert await store.find("") == ("!make test",)
    (path,) = (tmp_path / FOLDER).iterdir()
    path.write_text(path.read_text() + json.dumps("!!echo $TOKEN") + "\n")

    assert await PromptStore(tmp_path, tmp_path).find("") == ("!make test",)
    assert "TOKEN" not in path.read_text()


async def test_a_deleted_session_takes_its_prompts_with_it_but_not_those_of_others(tmp_path: Path) -> None:
    store = PromptStore(tmp_path, tmp_path)
    for session_id, text in (("s1", "only mine"), ("s1", "of both"), ("s2", "of both"), ("s2", "of the other")):
        journal(tmp_path, session_id)
        await store.add(text, session_id)

    journal(tmp_path, "s1").unlink()
    forget_session(tmp_path, "s1")

    assert "only mine" not in (next((tmp_path / FOLDER).iterdir())).read_text()
    assert await PromptStore(tmp_path, tmp_path).find("") == ("of the other", "of both")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / FOLDER).iterdir()} == {0o600}


async def test_the_prompts_of_a_session_that_was_removed_by_hand_are_not_found(tmp_path: Path) -> None:
    path = journal(tmp_path, "s1")
    await PromptStore(tmp_path, tmp_path).add("gone", "s1")
    path.unlink()

    assert await PromptStore(tmp_path, tmp_path).all() == ()
