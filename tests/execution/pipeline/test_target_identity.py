import os
from pathlib import Path

from tui_agent.execution.approval_binding import identity_of, replaced_paths, with_identities, without_paths


def test_a_target_is_identified_with_its_directory(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    (target,) = with_identities([str(tmp_path / "a")])

    assert target.path == str(tmp_path / "a")
    assert [place for place, _, _ in target.identities] == [str(tmp_path / "a"), str(tmp_path)]
    assert target.identities[0][1:] == identity_of(str(tmp_path / "a"))


def test_a_missing_target_is_identified_by_the_nearest_directory(tmp_path: Path) -> None:
    (target,) = with_identities([str(tmp_path / "x" / "y" / "z")])

    assert [place for place, _, _ in target.identities] == [str(tmp_path)]


def test_the_root_and_invalid_paths_can_be_identified() -> None:
    root, nothing = with_identities(["/", "a\0b"])

    assert [place for place, _, _ in root.identities] == ["/"]
    assert nothing.identities == ()


def test_a_target_counts_as_the_same_whatever_its_spelling(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    targets = with_identities([str(tmp_path / "a"), str(tmp_path / "new" / "b")])

    (tmp_path / "a").write_text("new")
    (tmp_path / "new").mkdir()

    assert replaced_paths(targets) == []


def test_another_file_and_a_missing_one_are_detected(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()
    targets = with_identities([str(tmp_path / "a"), str(tmp_path / "b")])

    os.replace(tmp_path / "c", tmp_path / "a")
    (tmp_path / "b").unlink()

    assert replaced_paths(targets) == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert replaced_paths(without_paths(targets, [str(tmp_path / "a")])) == [str(tmp_path / "b")]
