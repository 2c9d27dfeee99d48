"""Conversion of plain English into calls: every sentence form, in common spellings."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.messages import JsonObject
from tui_agent.providers.demo.demo_policy import HELP, understand
from tui_agent.providers.demo.guided_tour import DemoWorkspace

WORKSHOP = DemoWorkspace("/tmp/tour", "python3 -m pytest -q /tmp/tour")


def calls(words: str) -> list[tuple[str, JsonObject]]:
    goals = understand(words, WORKSHOP)
    assert goals is not None, f"not understood: {words}"
    return [(call.name, call.arguments) for goal in goals for call in goal.calls]


@table(
    ("words", "paths"),
    [
        ("read README.md", ["README.md"]),
        ("Show src/app.py", ["src/app.py"]),
        ("please show me the file src/app.py.", ["src/app.py"]),
        ("could you open `my file.txt`?", ["my file.txt"]),
        ("what's in setup.cfg?", ["setup.cfg"]),
        ("cat a.txt and b.txt", ["a.txt", "b.txt"]),
        ("read a.py, b.py and ./c/d.py", ["a.py", "b.py", "./c/d.py"]),
        ("print the contents of notes", ["notes"]),
        ("show README.md, please", ["README.md"]),
        ("view ../up.txt", ["../up.txt"]),
    ],
)
def test_reading(words: str, paths: list[str]) -> None:
    assert calls(words) == [("read", {"path": path}) for path in paths]


def test_reading_some_lines() -> None:
    assert calls("show lines 3-7 of a.py") == [("read", {"path": "a.py", "offset": 3, "limit": 5})]
    assert calls("read line 9 in a.py") == [("read", {"path": "a.py", "offset": 9, "limit": 1})]


@table(
    ("words", "arguments"),
    [
        ("find TODO", {"pattern": "TODO"}),
        ("search for `def main(` in src", {"pattern": r"def main\(", "path": "src"}),
        ('grep "two words" in the folder docs', {"pattern": "two words", "path": "docs"}),
        ("look for import os in a.py", {"pattern": "import os", "path": "a.py"}),
        ("where is price_of", {"pattern": "price_of"}),
        ("search [a-z]+", {"pattern": r"\[a-z\]\+"}),
    ],
)
def test_searching(words: str, arguments: JsonObject) -> None:
    assert calls(words) == [("grep", {"output_mode": "content", **arguments})]


@table(
    ("words", "arguments"),
    [
        ("list files", {"pattern": "**/*"}),
        ("ls", {"pattern": "**/*"}),
        ("List all files in src/", {"pattern": "**/*", "path": "src/"}),
        ("what files are here?", {"pattern": "**/*"}),
        ("show me the files in docs", {"pattern": "**/*", "path": "docs"}),
        ("find *.py in src", {"pattern": "**/*.py", "path": "src"}),
        ("list files matching src/**/*.ts", {"pattern": "src/**/*.ts"}),
    ],
)
def test_listing(words: str, arguments: JsonObject) -> None:
    assert calls(words) == [("glob", arguments)]


@table(
    ("words", "command"),
    [
        ("run ls -la | head", "ls -la | head"),
        ("Run `git status`", "git status"),
        ("execute make test && echo then done", "make test && echo then done"),
        ("!pwd", "pwd"),
        ("$ date", "date"),
        ('run echo "a" "b"', 'echo "a" "b"'),
        ("run the tests", "python3 -m pytest -q"),
        ("please run all tests again", "python3 -m pytest -q"),
    ],
)
def test_running(words: str, command: str) -> None:
    ((name, arguments),) = calls(words)

    assert (name, arguments["command"]) == ("bash", command)


@table(
    ("words", "old", "new", "everywhere"),
    [
        ("replace foo with bar in a.py", "foo", "bar", False),
        ("change `x = 1` to `x = 2` in a.py", "x = 1", "x = 2", False),
        ("please replace all colour by color in the file a.py", "colour", "color", True),
        ('replace "a b" with "c" in a.py everywhere', "a b", "c", True),
    ],
)
def test_replacing_reads_first_and_then_proposes(words: str, old: str, new: str, everywhere: bool) -> None:
    goals = understand(words, WORKSHOP)
    assert goals is not None
    assert calls(words) == [("read", {"path": "a.py"})]
    assert goals[0].waits is not None

    (edit,) = goals[0].waits(()).calls

    expected = {"path": "a.py", "old_string": old, "new_string": new, **({"replace_all": True} if everywhere else {})}
    assert (edit.name, edit.arguments) == ("edit", expected)


@table(
    ("words", "path", "content"),
    [
        ("create hello.txt with Hello, then more", "hello.txt", "Hello, then more\n"),
        ("make a new file called `a b.txt` containing the text: x", "a b.txt", "x\n"),
        ("write notes.md with one\ntwo\n", "notes.md", "one\ntwo\n"),
        ("create a.py with `print(1)`", "a.py", "print(1)\n"),
    ],
)
def test_creating(words: str, path: str, content: str) -> None:
    assert calls(words) == [("write", {"path": path, "content": content})]


@table("words", ["compare a.py and b.py", "diff a.py b.py", "Compare `a.py` with b.py."])
def test_comparing(words: str) -> None:
    assert calls(words) == [("read", {"path": "a.py"}), ("read", {"path": "b.py"})]


@table(
    "words",
    [
        "fix the failing test",
        "Please fix the failing test!",
        "repair my tests",
        "start the tour",
        "guided tour",
        "tour",
    ],
)
def test_the_tour(words: str) -> None:
    assert [arguments["path"] for _, arguments in calls(words)] == [
        "/tmp/tour/README.md",
        "/tmp/tour/cart.py",
        "/tmp/tour/test_cart.py",
    ]


@table("words", ["help", "?", "hello", "what can you do?", "how do I use this", "who are you"])
def test_asking_for_help(words: str) -> None:
    goals = understand(words, WORKSHOP)

    assert goals is not None
    assert [goal.text for goal in goals] == [HELP]


@table(
    "words",
    [
        "show me how to dance",
        "write a poem",
        "refactor everything",
        "read",
        "replace a with b",
        "x" * 5000,
        "",
        "  \n ",
    ],
)
def test_anything_else_is_not_understood(words: str) -> None:
    assert understand(words, WORKSHOP) is None


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["read", "a", "then", "in", "`", '"', "with", "fix test"])).map(" ".join)
)
def test_any_words_are_understood_or_not_but_never_break_anything(words: str) -> None:
    goals = understand(words, WORKSHOP)

    assert goals is None or all(bool(goal.calls) == (goal.waits is not None) for goal in goals)
