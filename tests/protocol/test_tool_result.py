"""Every returned value becomes a result for the model, or an error with a reason."""

import dataclasses
import datetime
import enum
from collections import OrderedDict, UserDict, deque, namedtuple
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from tests.support.table import table
from tui_agent.protocol import TextBlock, ToolResult
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool_result import as_tool_result

PICTURE = b"\x89PNG\r\n\x1a\n\x00\xff"


class Weather(BaseModel):
    """A model with values that JSON cannot express."""

    town: str
    at: datetime.datetime
    raw: bytes = b""


class Answer(BaseModel):
    """A model with the fields of a result."""

    content: str
    is_error: bool = False


@dataclasses.dataclass
class Size:
    """A dataclass."""

    width: int
    note: Any = None


@dataclasses.dataclass(slots=True)
class Article:
    """A dataclass with one field in common with results."""

    title: str
    content: str


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Shout(str):
    """A str subclass with an unusual `__str__`."""

    def __str__(self) -> str:
        return self.upper()


class Plain:
    """An object with a `__str__`."""

    def __str__(self) -> str:
        return "plainly"


Point = namedtuple("Point", "x y")
NOON = datetime.datetime(2026, 1, 2, 12)


@table(
    ("value", "text"),
    [
        (b"text", "text"),
        ("käse".encode(), "käse"),
        (b"", ""),
        (b"\xff\xfe text", "\ufffd\ufffd text"),
        (bytearray(b"text"), "text"),
        (memoryview(b"text"), "text"),
        (memoryview(b"t-e-x-t-")[::2], "text"),
        (PICTURE, "\ufffdPNG\r\n\x1a\n\x00\ufffd"),
        ({"raw": b"text", "more": [b"\xff"]}, '{"raw": "text", "more": ["\ufffd"]}'),
        (None, ""),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (3 + 4j, "(3+4j)"),
        ("", ""),
        (Shout("text"), "text"),
        (Colour.RED, "red"),
        (Level.HIGH, "3"),
        ([Colour.RED, Level.HIGH], '["red", 3]'),
        (NOON, "2026-01-02T12:00:00"),
        ([NOON.date(), NOON.time()], '["2026-01-02", "12:00:00"]'),
        (PurePosixPath("/a/b"), "/a/b"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Plain(), "plainly"),
        ([Plain()], '["plainly"]'),
        ({"b": 1, "a": [None, "ä"]}, '{"b": 1, "a": [null, "ä"]}'),
        (OrderedDict(a=1), '{"a": 1}'),
        (UserDict(a=1), '{"a": 1}'),
        (MappingProxyType({"a": {"b": 1}}), '{"a": {"b": 1}}'),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.values(), "[1]"),
        ({"z", "a", "m"}, '["a", "m", "z"]'),
        (frozenset({2, 1}), "[1, 2]"),
        (deque([1, 2]), "[1, 2]"),
        (range(3), "[0, 1, 2]"),
        ((1, "a"), '[1, "a"]'),
        (Point(1, 2), "[1, 2]"),
        (Weather(town="Bonn", at=NOON, raw=b"\xff"), '{"town": "Bonn", "at": "2026-01-02T12:00:00", "raw": "\ufffd"}'),
        ([Weather(town="Bonn", at=NOON)], '[{"town": "Bonn", "at": "2026-01-02T12:00:00", "raw": ""}]'),
        (Size(2), '{"width": 2, "note": null}'),
        ({"sizes": [Size(2, Size(3))]}, '{"sizes": [{"width": 2, "note": {"width": 3, "note": null}}]}'),
        (Article("t", "c"), '{"title": "t", "content": "c"}'),
        (Answer(content="only text"), "only text"),
        (ToolResult.of_text("own"), "own"),
        ({"data": b"inner"}, "inner"),
        ({"content": []}, ""),
        ({"content": None, "details": {"a": 1}}, ""),
        ({"content": b"inner", "is_error": False}, "inner"),
    ],
)
def test_a_value_is_converted_by_its_kind(value: object, text: str) -> None:
    result = as_tool_result(value)

    assert result.text == text
    assert not result.is_error
    assert all(type(block) is TextBlock and type(block.text) is str for block in result.content)
    assert ToolResult.model_validate_json(result.model_dump_json()) == result


@table(
    ("error", "text"),
    [
        (ValueError("not that"), "ValueError: not that"),
        (KeyError(), "KeyError"),
        (ToolError("the file is gone"), "the file is gone"),
        (ExceptionGroup("two", [ValueError("a"), OSError("b")]), "ExceptionGroup: two (2 sub-exceptions)"),
    ],
)
def test_a_returned_exception_is_an_error(error: Exception, text: str) -> None:
    assert as_tool_result(error) == ToolResult.of_text(text, is_error=True)


def numbers() -> Iterator[int]:
    yield 1


async def later() -> AsyncIterator[int]:
    yield 1


@table(
    ("make", "kind"),
    [
        (numbers, "generator"),
        (later, "async_generator"),
        (lambda: iter([1]), "list_iterator"),
        (lambda: map(str, [1]), "map"),
        (lambda: numbers, "function"),
        (lambda: len, "builtin_function_or_method"),
        (lambda: Weather, "ModelMetaclass"),
        (lambda: Size, "type"),
    ],
)
def test_an_unfinished_value_is_an_error_that_says_what_to_return(make: Callable[[], object], kind: str) -> None:
    result = as_tool_result(make())

    assert result.is_error
    assert result.text == (
        f"The tool returned an object of type {kind}, which is not a result. "
        "Return text, bytes, JSON data, a model, content blocks or a ToolResult."
    )


def test_recursive_values_and_odd_keys_are_still_shown() -> None:
    circle: list[object] = []
    circle.append(circle)
    size = Size(1)
    size.note = size

    assert as_tool_result(circle).text == "[[...]]"
    assert "width=1" in as_tool_result(size).text
    assert as_tool_result({(1, 2): "pair"}).text == "{(1, 2): 'pair'}"
