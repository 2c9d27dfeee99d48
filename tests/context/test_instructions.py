"""AGENTS.md files from all directories that apply, the closest last."""

import os
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.context import (
    ContextRegistry,
    cut_instructions,
    foreign_instructions,
    load_instructions,
    load_own_instructions,
)
from tui_agent.context.instructions import SIZE_CAP


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a package, inside a directory that also has instructions."""
    (tmp_path / "AGENTS.md").write_text("outside")
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "package").mkdir(parents=True)
    return root


def _texts(user_dir: Path | None, working_dir: Path) -> list[str]:
    return [layer.text.split("\n\n", 1)[1] for layer in load_instructions(user_dir, working_dir)]


def test_files_come_from_the_user_then_from_the_root_down(repository: Path, tmp_path: Path) -> None:
    user_dir = tmp_path / "config"
    user_dir.mkdir()
    (user_dir / "AGENTS.md").write_text("user")
    (repository / "AGENTS.md").write_text("root")
    (repository / "src" / "package" / "AGENTS.md").write_text("package")

    layers = load_instructions(user_dir, repository / "src" / "package")

    assert _texts(user_dir, repository / "src" / "package") == ["user", "root", "package"]
    assert ContextRegistry(layers).flat("system") == "\n\n".join(layer.text for layer in layers)
    assert layers[1].name == f"instructions:{repository / 'AGENTS.md'}"
    assert layers[1].text.startswith(f"Instructions from {repository / 'AGENTS.md'}:")
    assert layers[1].metadata == {"path": str(repository / "AGENTS.md")}
    assert layers[1].tags == ("system", "instructions")


@table(
    ("files", "below", "texts"),
    [
        ({"../AGENTS.md": "above"}, "src", []),
        # A worktree, whose `.git` is a file, is a repository of its own.
        ({"AGENTS.md": "root", "tree/.git": "gitdir: x", "tree/AGENTS.md": "worktree"}, "tree/deep", ["worktree"]),
        ({"CLAUDE.md": "fallback", "src/CLAUDE.md": "no", "src/AGENTS.md": "this"}, "src", ["fallback", "this"]),
        ({"AGENTS.md": b"\xef\xbb\xbfhello \xff world\n"}, ".", ["hello \ufffd world"]),
        ({"AGENTS.md": "\ufeffrule é".encode("utf-16-be")}, ".", ["rule é"]),
        ({"AGENTS.md": "rule é".encode("utf-16")}, ".", ["rule é"]),
        ({"AGENTS.md": "x" * SIZE_CAP}, ".", ["x" * SIZE_CAP]),
    ],
)
def test_the_files_that_apply_are_read_in_any_encoding(
    tmp_path: Path, files: dict[str, str | bytes], below: str, texts: list[str]
) -> None:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    (root / below).mkdir(parents=True, exist_ok=True)

    assert _texts(None, root / below) == texts


def test_outside_a_repository_only_the_directory_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "AGENTS.md").write_text("here")

    assert _texts(None, tmp_path / "here") == ["here"]


def test_a_long_file_is_truncated_with_a_note_and_named_for_the_user(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("é" * SIZE_CAP)
    (text,) = _texts(None, repository)
    assert text.startswith("é" * (SIZE_CAP // 2))
    assert text.endswith(f"(Cut here: only the first {SIZE_CAP} bytes are read.)")
    assert "\ufffd" not in text

    (repository / "AGENTS.md").write_text("see @long.md and @short.md\n")
    (repository / "long.md").write_text("x" * (SIZE_CAP + 1))
    (repository / "short.md").write_text("x")
    words = f"{repository / 'long.md'}: only the first 32,768 bytes are used; shorten it, or split it"
    assert cut_instructions(load_instructions(None, repository)) == (words,)


def test_an_unreadable_file_is_reported_in_its_layer(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "AGENTS.md").write_text("secret")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)

    assert _texts(None, repository) == ["(This file could not be read: Permission denied.)"]


def test_anything_but_a_file_is_ignored_and_a_file_is_read_once(repository: Path) -> None:
    (repository / "AGENTS.md").mkdir()
    os.mkfifo(repository / "CLAUDE.md")
    (repository / "src" / "AGENTS.md").symlink_to(repository / "nowhere")
    loop = repository / "loop"
    loop.symlink_to(loop)

    assert load_instructions(repository / "absent", repository / "src") == ()
    assert load_instructions(loop, loop / "deeper") == ()

    (repository / "AGENTS.md").rmdir()
    (repository / "AGENTS.md").write_text("root")
    (repository / "src" / "AGENTS.md").unlink()
    (repository / "src" / "AGENTS.md").symlink_to(repository / "AGENTS.md")
    assert _texts(repository, repository / "src") == ["root"]


# --- links ------------------------------------------------------------------------------------------------------------


def test_a_link_out_of_the_repository_is_reported_and_not_read(repository: Path, tmp_path: Path) -> None:
    (repository / "AGENTS.md").symlink_to(tmp_path / "AGENTS.md")
    (repository / "src" / "AGENTS.md").symlink_to("../../AGENTS.md")
    (repository / "src" / "package" / "AGENTS.md").write_text("own")

    assert _texts(None, repository / "src" / "package") == ["own"]
    assert foreign_instructions(repository / "src" / "package") == (
        (repository / "AGENTS.md", tmp_path / "AGENTS.md"),
        (repository / "src" / "AGENTS.md", tmp_path / "AGENTS.md"),
    )


def test_links_decide_by_their_target(repository: Path, tmp_path: Path) -> None:
    (repository / "docs").mkdir()
    (repository / "docs" / "agents.md").write_text("shared")
    (repository / "src" / "AGENTS.md").symlink_to("../docs/agents.md")
    assert _texts(None, repository / "src") == ["shared"]
    assert foreign_instructions(repository / "src") == ()

    (repository / "AGENTS.md").symlink_to(tmp_path / "AGENTS.md")
    (repository / "CLAUDE.md").write_text("inside")
    assert _texts(None, repository) == ["inside"], "CLAUDE.md counts where AGENTS.md leads out"

    (repository / "CLAUDE.md").unlink()
    (repository / "AGENTS.md").unlink()
    (repository / ".git" / "config").write_text("url = https://me:token@host/")
    (repository / "AGENTS.md").symlink_to(".git/config")
    assert _texts(None, repository) == [], "files of git are no instructions"
    assert foreign_instructions(repository) == ((repository / "AGENTS.md", repository / ".git" / "config"),)


def test_the_user_may_keep_instructions_anywhere(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "AGENTS.md").write_text("mine")
    (tmp_path / "config").symlink_to("dotfiles")
    (repository / "AGENTS.md").symlink_to(tmp_path / "config" / "AGENTS.md")

    assert _texts(tmp_path / "config", repository) == ["mine"]
    own = load_own_instructions(tmp_path / "config")
    assert foreign_instructions(repository, own) == (), "the user's own files are read anyway"


def test_a_mention_imports_a_file_of_the_workspace_and_what_that_imports(repository: Path) -> None:
    (repository / "AGENTS.md").write_text(
        "Read @docs/style.md. Ask @someone, use `@docs/code.md`.\n```\n@docs/code.md\n```\n"
    )
    (repository / "docs").mkdir()
    (repository / "docs" / "style.md").write_text("style, see @more.md and @../AGENTS.md")
    (repository / "docs" / "more.md").write_text("more")
    (repository / "docs" / "code.md").write_text("code")

    (layer,) = load_instructions(None, repository / "src")

    docs = repository / "docs"
    assert layer.text.endswith(
        f"\n\nImported from {docs / 'style.md'}:\n\nstyle, see @more.md and @../AGENTS.md"
        f"\n\nImported from {docs / 'more.md'}:\n\nmore"
    )
    assert layer.metadata["imports"] == [str(docs / "style.md"), str(docs / "more.md")]


def test_nothing_outside_the_workspace_and_no_hidden_file_is_imported(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "key.md").write_text("secret")
    (repository / "link.md").symlink_to(tmp_path / "key.md")
    (repository / ".env").write_text("secret")
    (repository / ".git" / "config.md").write_text("secret")
    (repository / "docs.md").symlink_to(".env")
    (repository / "docs").symlink_to(".git")
    hidden = "@.env @.git/config.md @docs.md @docs/config.md"
    mentioned = f"@../key.md @link.md @{tmp_path}/key.md @~/key.md {hidden}"
    (repository / "AGENTS.md").write_text(mentioned)

    (layer,) = load_instructions(None, repository)

    assert "secret" not in layer.text
    assert layer.text.count("it is outside the workspace") == 1, "each target once"
    assert "imports" not in layer.metadata


def test_imports_end_at_a_depth_and_a_number(repository: Path) -> None:
    for n in range(9):
        (repository / f"{n}.md").write_text(f"text {n} @{n + 1}.md")
    (repository / "AGENTS.md").write_text("@0.md")
    (deep,) = load_instructions(None, repository)
    (repository / "AGENTS.md").write_text(" ".join(f"@f{n}.md" for n in range(40)))
    for n in range(40):
        (repository / f"f{n}.md").write_text(f"file {n}.")
    (many,) = load_instructions(None, repository)

    assert ("text 4" in deep.text, "text 5" in deep.text) == (True, False)
    assert "(@5.md: not imported, files import each other too deeply.)" in deep.text
    assert many.text.count("Imported from") == 20
    assert "(@f20.md: not imported, only 20 files are.)" in many.text
