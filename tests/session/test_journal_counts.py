"""Counts of journals: exact, and each byte of a journal is read once for them."""

from pathlib import Path

from tests.support.table import table
from tests.ui.app.saved_sessions import save
from tui_agent.session.journal_counts import FILE_NAME, CountsFile, JournalCounts

ANSWER = '{"type":"message.ended","data":{"message":{"role":"assistant","content":[{"type":"text","text":"user"}]}}}\n'
PROMPT = '{"type":"message.ended","data":{"message":{"role":"user","kind":"prompt"}}}\n'
NOTICE = '{"type":"message.ended","data":{"message":{"role":"user","kind":"notice"}}}\n'
CHILD = '{"type":"message.ended","depth":1,"data":{"message":{"role":"user","kind":"prompt"}}}\n'


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def messages(counts: JournalCounts | None) -> int:
    assert counts is not None
    return counts.messages


def test_the_users_messages_to_the_main_agent_count(tmp_path: Path) -> None:
    path = save(tmp_path, "one", tmp_path, "fix it")
    append(path, ANSWER + PROMPT + NOTICE + CHILD + "damaged\n")

    counts = CountsFile(tmp_path)

    assert counts.known(path) is None
    assert messages(counts.count(path)) == 2
    assert messages(counts.known(path)) == 2
    assert counts.count(tmp_path / "missing.jsonl") is None


def test_the_next_program_knows_the_numbers_and_reads_only_what_was_added(tmp_path: Path) -> None:
    path = save(tmp_path, "one", tmp_path, "fix it")
    first = CountsFile(tmp_path)
    first.count(path)
    first.save()
    with path.open("r+b") as file:
        # Nothing changes the lines of a journal: if they were read again, they would not count any more.
        file.write(b"x" * (path.stat().st_size - 1))
    append(path, PROMPT + PROMPT[:-1])

    second = CountsFile(tmp_path)

    assert second.known(path) is None
    assert messages(second.count(path)) == 2
    append(path, "\n")
    assert messages(second.count(path)) == 3
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600


def test_another_journal_of_the_same_name_and_a_shorter_one_are_counted_anew(tmp_path: Path) -> None:
    path = save(tmp_path, "one", tmp_path, "fix it")
    append(path, PROMPT * 5)
    counts = CountsFile(tmp_path)
    assert messages(counts.count(path)) == 6

    path.write_text(PROMPT, "utf-8")
    assert messages(counts.count(path)) == 1
    path.rename(tmp_path / "kept")
    path.write_text(PROMPT * 3, "utf-8")
    assert messages(counts.count(path)) == 3


def test_deleted_sessions_leave_no_number(tmp_path: Path) -> None:
    one, two = (save(tmp_path, name, tmp_path, "fix it") for name in ("one", "two"))
    counts = CountsFile(tmp_path)
    counts.count(one)
    counts.count(two)
    one.unlink()
    counts.save()

    assert '"one"' not in (tmp_path / FILE_NAME).read_text("utf-8")
    assert messages(CountsFile(tmp_path).known(two)) == 1


@table(
    "content",
    ["", "[]", '{"version": 1, "counts": {"one": [1, "2", 3]}}', '{"version": 2, "counts": {"one": {}}}', "\0"],
)
def test_a_damaged_file_of_numbers_is_ignored_and_replaced(tmp_path: Path, content: str) -> None:
    path = save(tmp_path, "one", tmp_path, "fix it")
    (tmp_path / FILE_NAME).write_text(content, "utf-8")
    counts = CountsFile(tmp_path)

    assert messages(counts.count(path)) == 1
    counts.save()
    assert messages(CountsFile(tmp_path).known(path)) == 1
