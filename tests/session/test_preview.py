"""The preview of a session: first prompt, last words, changed files, from a bounded part of its journal."""

from pathlib import Path

from tests.ui.app.saved_sessions import save
from tui_agent.session.summary import HEAD_SIZE, PREVIEW_TAIL_SIZE, read_preview


def test_a_preview_has_first_prompt_last_answer_and_changed_files(tmp_path: Path) -> None:
    path = save(tmp_path, "one", tmp_path, "fix it", "Fixed.", files={"a.py": (2, 1), "b.py": (0, 3)})

    preview = read_preview(path)

    assert preview is not None
    assert (preview.prompt, preview.answer) == ("fix it", "Fixed.")
    assert [(file.path, file.added, file.removed) for file in preview.files.values()] == [
        ("a.py", 2, 1),
        ("b.py", 0, 3),
    ]
    assert preview.is_whole


def test_a_long_journal_is_read_at_its_ends_only(tmp_path: Path) -> None:
    path = save(tmp_path, "one", tmp_path, "fix it", "Fixed.")
    *lines, last = path.read_text("utf-8").splitlines(keepends=True)
    filler = ("x" * 1_000 + "\n") * ((HEAD_SIZE + PREVIEW_TAIL_SIZE) // 1_000 + 10)
    path.write_text("".join(lines[:3]) + filler + "".join(lines[3:]) + last)

    preview = read_preview(path)

    assert preview is not None
    assert not preview.is_whole
    assert (preview.prompt, preview.answer) == ("fix it", "Fixed.")


def test_damaged_and_missing_journals_have_an_empty_preview_or_none(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b'{"type":"message.ended","data":[]}\n"type":"file.changed"\n\xff\x00' * 20)

    preview = read_preview(path)

    assert preview is not None
    assert (preview.prompt, preview.answer, preview.files) == ("", "", {})
    assert read_preview(tmp_path / "missing.jsonl") is None
