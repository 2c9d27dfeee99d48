"""Changes of a command, by its entry in the table."""

import pytest

from tui_agent.permissions.commands.argv import is_remote, parse_arguments
from tui_agent.permissions.commands.catalogue import writer
from tui_agent.permissions.commands.row_effects import writes_of


def writes(text: str) -> list[str]:
    name, *words = text.split()
    entry = writer(name)
    assert entry is not None
    return [
        f"{write.path}{'/**' if write.whole else ''}" for write in writes_of(name, entry, parse_arguments(entry, words))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rm a b", ["a", "b"]),
        ("rm -rf a", ["a/**"]),
        ("rm --recursive -- -a", ["-a/**"]),
        ("rm", []),
        ("cp a b", ["b", "b/a"]),
        ("cp a x/b c", ["c", "c/a", "c/b"]),
        ("cp -t dir a b", ["dir", "dir/a", "dir/b"]),
        ("cp --target-directory=dir a", ["dir", "dir/a"]),
        ("cp -rt dir a", ["dir", "dir/a"]),
        ("cp --parents x/a d", ["d", "d/x/a"]),
        ("cp .. d", ["d"]),
        ("cp a", [".", "./a"]),
        ("mv a b", ["b", "b/a", "a/**"]),
        ("mv a host:b", ["a/**"]),
        ("ln -s a b", ["b", "b/a"]),
        ("install -d a b", ["a", "b"]),
        ("install -m 755 a b", ["b", "b/a"]),
        ("chmod -R 755 a", ["755/**", "a/**"]),
        ("truncate -s 0 a", ["a"]),
        ("truncate -s0 a", ["a"]),
        ("touch -d yesterday a", ["a"]),
        ("sed s/a/b/ f", []),
        ("sed -i s/a/b/ f", ["f"]),
        ("sed -i.bak s/a/b/ f", ["f"]),
        ("sed -ni -e p f", ["f"]),
        ("sed --in-place=x -e p f", ["f"]),
        ("perl -pi -e x f", ["f"]),
        ("gzip -c f", []),
        ("gzip f", ["f.gz", "f"]),
        ("gunzip a/f.tgz", ["a/f", "a/f.tar", "a/f.tgz.gz", "a/f.tgz"]),
        ("zstd f", ["f.zst", "f"]),
        ("sort -o a b", ["a"]),
        ("sort -oa b", ["a"]),
        ("sort --output=a b", ["a"]),
        ("sort -k 2 b", []),
        ("uniq a b", ["b"]),
        ("uniq a", []),
        ("mknod a b c", ["a"]),
        ("tee -a a b", ["a", "b"]),
        ("rsync -a --delete a b", ["b/**", "b/a"]),
        ("rsync -a a host:b", []),
        ("curl -o a x", ["a"]),
        ("curl --output", []),
        ("mktemp -p d", ["d"]),
        # targets, in any role
        ("wget -P d u", ["d"]),
        ("wget --directory-prefix=d u", ["d"]),
        ("curl -O --output-dir d u", ["d"]),
        # abbreviated
        ("cp --target=d a", ["d", "d/a"]),
        ("install --target-dir=d a", ["d", "d/a"]),
        ("sort --outp=a b", ["a"]),
        ("rm --recu a", ["a/**"]),
        ("rsync -a --backup-d=c a b", ["c", "b", "b/a"]),
        ("sed --in-pl=x -e p f", ["f"]),
    ],
)
def test_changed_paths(text: str, expected: list[str]) -> None:
    assert writes(text) == expected


@pytest.mark.parametrize(
    ("text", "unclear"),
    [
        ("cp --weird=a b c", ["a"]),
        ("cp --weird a b c", ["a"]),
        ("cp --recursive a b", []),
        ("cp -w a b c", ["-w", "a"]),
        ("rm -vabcde", ["-vabcde"]),
        ("rm -r a", []),
    ],
)
def test_the_value_of_an_unknown_option_may_be_changed(text: str, unclear: list[str]) -> None:
    name, *words = text.split()
    entry = writer(name)
    assert entry is not None

    found = parse_arguments(entry, words)

    assert [*found.of("", "optional"), *found.unclear] == unclear


def test_the_directory_that_a_command_changes_to() -> None:
    entry = writer("patch")
    assert entry is not None

    assert parse_arguments(entry, ["-d", "sub", "f"]).directory == "sub"


@pytest.mark.parametrize(
    ("path", "expected"), [("host:x", True), ("me@host:x", True), ("rsync://h/x", True), ("a/b:c", False), ("a", False)]
)
def test_paths_on_other_machines(path: str, expected: bool) -> None:
    assert is_remote(path) is expected
