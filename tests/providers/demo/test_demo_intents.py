"""Conversion of plain English into calls: every sentence form, in common spellings."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.messages import JsonObject
from tui_agent.providers.demo.demo_policy import HELP, understand
from tui_agent.providers.demo.guided_tour import DemoWorkspace

WORKSHOP = DemoWorkspace("/tmp/tour", "python3 -m pytest -q /tmp/tour")
TOUR = [("read", {"path": f"/tmp/tour/{name}"}) for name in ("README.md", "cart.py", "test_cart.py")]


def calls(words: str) -> list[tuple[str, JsonObject]]:
    goals = understand(words, WORKSHOP)
    assert goals is not None, f"not understood: {words}"
    return [(call.name, call.arguments) for goal in goals for call in goal.calls]


def reads(*paths: str, **more: int) -> list[tuple[str, JsonObject]]:
    return [("read", {"path": path, **more}) for path in paths]


def finds(**arguments: str) -> list[tuple[str, JsonObject]]:
    return [("grep", {"output_mode": "content", **arguments})]


def lists(**arguments: str) -> list[tuple[str, JsonObject]]:
    return [("glob", {"pattern": "**/*", **arguments})]


def writes(path: str, content: str) -> list[tuple[str, JsonObject]]:
    return [("write", {"path": path, "content": content})]


@table(
    ("words", "expected"),
    [
        ("read README.md", reads("README.md")),
        ("please show me the file src/app.py.", reads("src/app.py")),
        ("could you open `my file.txt`?", reads("my file.txt")),
        ("what's in setup.cfg?", reads("setup.cfg")),
        ("cat a.txt and b.txt", reads("a.txt", "b.txt")),
        ("read a.py, b.py and ./c/d.py", reads("a.py", "b.py", "./c/d.py")),
        ("print the contents of notes", reads("notes")),
        ("show README.md, please", reads("README.md")),
        ("show lines 3-7 of a.py", reads("a.py", offset=3, limit=5)),
        ("read line 9 in a.py", reads("a.py", offset=9, limit=1)),
        ("compare a.py and b.py", reads("a.py", "b.py")),
        ("diff a.py b.py", reads("a.py", "b.py")),
        ("Please fix the failing test!", TOUR),
        ("repair my tests", TOUR),
        ("start the tour", TOUR),
        ("find TODO", finds(pattern="TODO")),
        ("search for `def main(` in src", finds(pattern=r"def main\(", path="src")),
        ('grep "two words" in the folder docs', finds(pattern="two words", path="docs")),
        ("look for import os in a.py", finds(pattern="import os", path="a.py")),
        ("where is price_of", finds(pattern="price_of")),
        ("search [a-z]+", finds(pattern=r"\[a-z\]\+")),
        ("list files", lists()),
        ("ls", lists()),
        ("List all files in src/", lists(path="src/")),
        ("what files are here?", lists()),
        ("show me the files in docs", lists(path="docs")),
        ("find *.py in src", lists(pattern="**/*.py", path="src")),
        ("list files matching src/**/*.ts", lists(pattern="src/**/*.ts")),
        ("create hello.txt with Hello, then more", writes("hello.txt", "Hello, then more\n")),
        ("make a new file called `a b.txt` containing the text: x", writes("a b.txt", "x\n")),
        ("write notes.md with one\ntwo\n", writes("notes.md", "one\ntwo\n")),
        ("create a.py with `print(1)`", writes("a.py", "print(1)\n")),
    ],
)
def test_a_sentence_becomes_calls(words: str, expected: list[tuple[str, JsonObject]]) -> None:
    assert calls(words) == expected


@table(
    ("words", "command"),
    [
        ("run ls -la | head", "ls -la | head"),
        ("Run `git status`", "git status"),
        ("execute make test && echo then done", "make test && echo then done"),
        ("!pwd", "pwd"),
        ("$ date", "date"),
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
