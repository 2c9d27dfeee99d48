"""Files that a session has changed, with the lines of all changes."""

from tests.ui.story import Story
from tui_agent.protocol.events import FileChanged, SessionLoaded, SessionRewound
from tui_agent.ui.state.plan_and_files import ChangedFiles, FileTotals


def changed(story: Story, path: str, added: int, removed: int, call_id: str | None = "c1") -> int:
    change = FileChanged(path=path, change="modified", call_id=call_id, added=added, removed=removed)
    return story.tell(change).seq


def back(
    story: Story, to_seq: int, *files: str, call_id: str | None = None, lines: tuple[int, int] = (9, 9), **fields: bool
) -> None:
    """Restore files as a rewind does, with a change for each."""
    last = story.envelopes[-1].seq
    for file in files:
        changed(story, f"/shop/{file}", *lines, None)
    fields = {"text": "x", "conversation": False, "files": files, "call_id": call_id, **fields}
    story.tell(SessionRewound(to_seq=to_seq, from_seq=last, **fields))


def fold(story: Story) -> dict[str, FileTotals]:
    files = ChangedFiles()
    for envelope in story.envelopes:
        files.apply(envelope)
    return files.files


def shop() -> Story:
    story = Story()
    story.tell(SessionLoaded(id="s1", cwd="/shop"))
    return story


def test_changes_of_a_file_add_up_and_the_newest_file_is_last() -> None:
    story = shop()
    changed(story, "/shop/a.py", 2, 1)
    changed(story, "/shop/b.py", 1, 0)
    changed(story, "/shop/a.py", 3, 4, "c2")
    changed(story, "/etc/hosts", 1, 0)

    assert list(fold(story).items()) == [
        ("b.py", FileTotals(1, 0, 1)),
        ("a.py", FileTotals(5, 5, 2)),
        ("/etc/hosts", FileTotals(1, 0, 1)),
    ]


def test_a_rewind_leaves_the_changes_before_that_moment() -> None:
    story = shop()
    before = story.envelopes[-1].seq
    first = changed(story, "/shop/a.py", 2, 1)
    changed(story, "/shop/a.py", 3, 4)
    later = changed(story, "/shop/b.py", 1, 0)
    back(story, first, "a.py", "b.py")
    assert fold(story) == {"a.py": FileTotals(2, 1, 1)}

    back(story, later, "a.py", "b.py")
    assert fold(story) == {"a.py": FileTotals(5, 5, 2), "b.py": FileTotals(1, 0, 1)}
    back(story, before, "a.py", "b.py")
    assert fold(story) == {}


def test_undoing_one_call_leaves_the_changes_of_the_others() -> None:
    story = shop()
    changed(story, "/shop/a.py", 2, 1, "c1")
    changed(story, "/shop/a.py", 3, 4, "c2")
    back(story, 1, "a.py", call_id="c1")

    assert fold(story) == {"a.py": FileTotals(3, 4, 1)}


def test_undoing_a_part_takes_its_lines_away_and_undoing_all_takes_the_file_away() -> None:
    story = shop()
    changed(story, "/shop/a.py", 5, 3)
    back(story, story.envelopes[-1].seq, "a.py", lines=(1, 2), is_undo=True)
    assert fold(story) == {"a.py": FileTotals(3, 2, 1)}
    back(story, story.envelopes[-1].seq, "mine.py", lines=(0, 4), is_undo=True)
    assert fold(story)["mine.py"] == FileTotals(0, 4, 1)
    back(story, 0, "a.py", lines=(2, 3), is_undo=True)
    assert list(fold(story)) == ["mine.py"]
