"""Here-documents end as in bash, or are unreadable."""

import pytest

from tui_agent.permissions.shell.parser import read_script
from tui_agent.permissions.shell.syntax import Sequence, SimpleCommand, Unsupported


def first(text: str) -> object:
    statement = read_script(text)
    assert isinstance(statement, Sequence)
    return statement.parts[0]


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("cat <<EOF\na\nb\nEOF", "a\nb\n"),
        ("cat <<'E F'\n$(x)\nE F\n", "$(x)\n"),
        ("cat <<-EOF\n\ta\n\tEOF\n", "\ta\n"),
        ("cat - <<EOF\nx\nEOF", "x\n"),
        ("cat <<EOF >x y\nEOF\n", ""),
        ("cat <<< word", "word"),
    ],
)
def test_the_body_of_a_here_document(text: str, body: str) -> None:
    found = first(text)

    assert isinstance(found, SimpleCommand)
    assert found.heredoc == body


@pytest.mark.parametrize(
    "text",
    [
        "cat <<EOF\nx", "cat <<''\nx\n\nls", "cat <<$X\nx\n$X\n",
        "cat <<EOF <<EOF\na\nEOF\nb\nEOF\n",
        "cat <<EOF\na\\\nb\nEOF\n", "cat <<EOF; ls\nx\nEOF\n", "cat <<EOF & ls\nx\nEOF\n", "cat <<EOF (\nx\nEOF\n",
        "cat <<'EOF\n'\nx\nEOF\n'\n", "cat <<EOF\n`x\nEOF\n", "cat <<EOF && ls && (\nEOF\nls)\n",
    ],
)  # fmt: skip
def test_an_ambiguous_here_document_is_unreadable(text: str) -> None:
    statement = read_script(text)
    parts = statement.parts if isinstance(statement, Sequence) else (statement,)

    assert any(isinstance(part, Unsupported) and part.unreadable for part in parts)
