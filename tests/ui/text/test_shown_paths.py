"""One spelling of a path on the whole screen."""

from tests.support.table import table
from tui_agent.ui.text.sanitiser import shown_path, shown_summary


@table(
    ("path", "root", "shown"),
    [
        ("/home/u/shop/src/price.py", "/home/u/shop", "src/price.py"),
        ("/home/u/shop/src/price.py", "/home/u/shop/", "src/price.py"),
        ("/home/u/shop//src/price.py", "/home/u/shop", "src/price.py"),
        ("/home/u/shop", "/home/u/shop", "."),
        ("/home/u/shop/", "/home/u/shop", "."),
        ("/home/u/shop-old/price.py", "/home/u/shop", "/home/u/shop-old/price.py"),
        ("/etc/passwd", "/home/u/shop", "/etc/passwd"),
        ("/home/u/shop/../key", "/home/u/shop", "/home/u/shop/../key"),
        ("src/price.py", "/home/u/shop", "src/price.py"),
        ("/etc/passwd", "", "/etc/passwd"),
        ("/etc/passwd", "/", "/etc/passwd"),
    ],
)
def test_a_path_is_relative_to_the_workspace_and_absolute_only_outside(path: str, root: str, shown: str) -> None:
    assert shown_path(path, root) == shown


@table(
    ("summary", "arguments", "shown"),
    [
        ("/w/a.py:10–20", {"path": "/w/a.py", "offset": 10}, "a.py:10–20"),
        ("/w/a.py (+1 −1)", {"file_path": "/w/a.py", "old_string": "/w/a.py"}, "a.py (+1 −1)"),
        ("round in /w", {"pattern": "round", "path": "/w"}, "round in ."),
        ("/w/x in /w", {"pattern": "/w/x", "path": "/w"}, "/w/x in ."),
        ("/etc/hosts", {"path": "/etc/hosts"}, "/etc/hosts"),
        # A command runs as it is written, so it is shown so.
        ("rm -r /w/build", {"command": "rm -r /w/build"}, "rm -r /w/build"),
        ("/w/tidy.sh --all", {"command": "/w/tidy.sh --all"}, "/w/tidy.sh --all"),
    ],
)
def test_a_summary_spells_the_paths_among_its_arguments_so(
    summary: str, arguments: dict[str, object], shown: str
) -> None:
    assert shown_summary(summary, arguments, "/w") == shown
