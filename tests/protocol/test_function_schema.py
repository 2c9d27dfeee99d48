"""Signatures become schemas; an error names the parameter that cannot."""

import asyncio
import enum
import functools
import io
from collections.abc import Callable
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.function_schema import read_parameters, split_docstring
from tui_agent.protocol.function_tool import tool
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext

CONTEXT = ToolContext(call_id="1", tool_name="f")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A place."""

    x: int
    y: int = 0


@dataclass
class Size:
    width: int


class Options(TypedDict, total=False):
    depth: int


def properties(function: Callable[..., object]) -> JsonObject:
    return read_parameters("f", function).schema.get("properties", {})


def test_types_defaults_and_docstring_become_the_schema() -> None:
    def search(
        query: str,
        limit: int = 3,
        kind: Literal["web", "news"] = "web",
        since: Optional[int] = None,  # noqa: UP045 — this spelling, too
        before: int = None,  # type: ignore[assignment]  # noqa: RUF013 — and this one
        tags: list[str] = [],  # noqa: B006 — the model gets a copy
    ) -> str:
        """Search.

        Args:
            query: Words.
            limit: Most hits.
        """
        return query

    parameters = read_parameters("f", search)

    assert parameters.description == "Search."
    assert parameters.schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "Words."},
            "limit": {"type": "integer", "default": 3, "description": "Most hits."},
            "kind": {"type": "string", "enum": ["web", "news"], "default": "web"},
            "since": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "before": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
    }


async def test_models_dataclasses_and_typed_dictionaries_reach_the_function_as_such() -> None:
    def draw(at: Point, size: Size, options: Options, colour: Colour = Colour.RED) -> str:
        return f"{at!r} {size!r} {options!r} {colour!r}"

    drawn = await tool(draw, description="d").execute(
        {"at": {"x": "1"}, "size": {"width": 2}, "options": {"depth": 3}, "colour": "blue"}, CONTEXT
    )

    assert drawn.text == "Point(x=1, y=0) Size(width=2) {'depth': 3} <Colour.BLUE: 'blue'>"
    assert properties(draw)["at"] == {"$ref": "#/$defs/Point"}


def test_descriptions_in_the_annotation_override_the_docstring() -> None:
    def page(number: Annotated[int, Field(ge=1, description="From 1.")], size: int = Field(10, le=50)) -> str:
        """Show a page.

        Args:
            number: A number.
            size: Lines.
        """
        return f"{number} {size}"

    assert properties(page) == {
        "number": {"type": "integer", "minimum": 1, "description": "From 1."},
        "size": {"type": "integer", "maximum": 50, "default": 10, "description": "Lines."},
    }


async def test_parameters_named_like_methods_of_pydantic_work() -> None:
    @tool
    def save(json: str, schema: str, copy: bool = True, model_config: str = "m") -> str:
        """Save."""
        return f"{json} {schema} {copy} {model_config}"

    assert list(save.spec.input_schema["properties"]) == ["json", "schema", "copy", "model_config"]
    assert (await save.execute({"json": "j", "schema": "s", "copy": False}, CONTEXT)).text == "j s False m"


class Library:
    """Books."""

    def find(self, title: str) -> str:
        """Find a book."""
        return f"found {title}"

    def __call__(self, title: str) -> str:
        """Lend a book."""
        return f"lent {title}"


class Shelf:
    """Put a book back."""

    async def __call__(self, title: str, context: ToolContext) -> str:
        return f"put back {title} {context.call_id}"


async def fetch(url: str, key: str, *, retries: int = 2) -> str:
    """Fetch a page."""
    return f"{url} {key} {retries}"


@table(
    ("function", "name", "description", "arguments", "text"),
    [
        (Library().find, "find", "Find a book.", {"title": "Emma"}, "found Emma"),
        (Library(), "Library", "Lend a book.", {"title": "Emma"}, "lent Emma"),
        (Shelf(), "Shelf", "Put a book back.", {"title": "Emma"}, "put back Emma 1"),
        (functools.partial(fetch, key="s3cret"), "fetch", "Fetch a page.", {"url": "u"}, "u s3cret 2"),
        (functools.partial(functools.partial(fetch, "u"), retries=1), "fetch", "Fetch a page.", {"key": "k"}, "u k 1"),
        (functools.lru_cache(Library().find), "find", "Find a book.", {"title": "Emma"}, "found Emma"),
    ],
)
async def test_whatever_can_be_called_becomes_a_tool(
    function: Any, name: str, description: str, arguments: JsonObject, text: str
) -> None:
    made = tool(function)

    assert (made.name, made.spec.description) == (name, description)
    assert set(made.spec.input_schema["required"]) == set(arguments)
    assert not {"s3cret", "retries=1"} & set(str(made.spec).split("'")), (
        "what a partial gives is not shown to the model"
    )
    assert (await made.execute(arguments, CONTEXT)).text == text


def test_annotations_in_quotes_are_looked_up_where_they_were_written() -> None:
    def place(point: "Point", several: "list[Point]", out: "Path" = Path()) -> "Unknown":  # type: ignore[name-defined] # noqa: F821 — the return type is not looked up
        return point

    assert properties(place)["several"] == {"type": "array", "items": {"$ref": "#/$defs/Point"}}


@table(
    "hint",
    [ToolContext, Optional[ToolContext], ToolContext | None, "ToolContext"],  # noqa: UP045 — this spelling, too
)
def test_the_context_is_known_by_its_type_whatever_its_name(hint: Any) -> None:
    def look(at: str, here: Any = None) -> str:
        return at

    look.__annotations__["here"] = hint

    def checked(context: "unknown.ToolContext") -> str:  # type: ignore[name-defined]  # noqa: F821 — under TYPE_CHECKING
        return context.call_id

    assert read_parameters("f", checked).context_name == "context"
    assert read_parameters("f", look).context_name == "here"
    assert list(properties(look)) == ["at"]


def two_contexts(one: ToolContext, other: ToolContext) -> str:
    return ""


def foreign_context(context: str) -> str:
    return context


def unknown_name(at: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821 — that is the case
    return str(at)


def wrong_constraint(at: Annotated[int, Field(discriminator="kind")]) -> str:
    return str(at)


def many_paths(*paths: str) -> str:
    return str(paths)


def named_paths(**paths: str) -> str:
    return str(paths)


def taking(hint: Any) -> Callable[[Any], str]:
    """Return a function with a parameter of a type."""

    def look(through: Any) -> str:
        return str(through)

    look.__annotations__["through"] = hint
    return look


NO_SCHEMA = "tool f: parameter through has a type that a JSON schema cannot express: "


@table(
    ("function", "words"),
    [
        (two_contexts, "tool f: parameter other is the second one for the context; one is the first"),
        (foreign_context, "parameter context would get the ToolContext, not an argument"),
        (unknown_name, "parameter at has an annotation that cannot be resolved (name 'Nowhere' is not defined)"),
        (taking(io.StringIO), NO_SCHEMA),
        (taking(Callable[[int], int]), NO_SCHEMA),
        (taking(asyncio.Event), NO_SCHEMA),
        (wrong_constraint, "parameter at has a type that a JSON schema cannot express"),
        (Library.find, "parameter self needs a type annotation; give the bound method"),
        (many_paths, "tool f: *paths: str cannot be passed by name; list its parameters one by one"),
        (named_paths, "tool f: **paths: str cannot be passed by name; list its parameters one by one"),
        (max, "tool f: "),
        (dict.fromkeys, "tool f: "),
    ],
)
def test_a_refusal_names_the_tool_the_parameter_and_what_to_do(function: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tool(name="f", description="d")(function)
    assert words in str(caught.value)


GOOGLE = """
    Search the web.

    Results come from a cache.

    Args:
        query: Words to look for,
            quotes included.
        limit (int, optional): Most hits: 3 by default.
        *more: Further words.

    Returns:
        One line a hit.
"""

NUMPY = """
    Search the web.

    Results come from a cache.

    Parameters
    ----------
    query : str
        Words to look for,
        quotes included.
    limit : int, optional
        Most hits: 3 by default.
    *more
        Further words.

    Returns
    -------
    str
        One line a hit.
"""

REST = """
    Search the web.

    Results come from a cache.

    :param query: Words to look for,
        quotes included.
    :type query: str
    :param int limit: Most hits: 3 by default.
    :param more: Further words.
    :returns: One line a hit.
"""

WORDS = {
    "query": "Words to look for, quotes included.",
    "limit": "Most hits: 3 by default.",
    "more": "Further words.",
}


@table("docstring", [GOOGLE, NUMPY, REST])
def test_each_style_gives_the_parameter_descriptions_and_the_rest(docstring: str) -> None:
    description, words = split_docstring(cleandoc(docstring))

    assert words == WORDS
    assert description.startswith("Search the web.\n\nResults come from a cache.\n\n")
    assert "One line a hit." in description
    assert "Words" not in description
    assert "query" not in description


@table(
    "docstring",
    [
        "",
        "Say it: now.",
        "Show a table.\n\nname: the first column\n:value: the second",
        "Use arguments wisely.\nArgs are not explained here.",
        "Parameters\nof the motor.",
    ],
)
def test_other_text_stays_as_it_is(docstring: str) -> None:
    assert split_docstring(docstring) == (docstring, {})


def test_shared_descriptions_and_parameters_without_one() -> None:
    assert split_docstring("Add.\n\nParameters\n----------\na, b : int\n    A number.\nc : int") == (
        "Add.",
        {"a": "A number.", "b": "A number."},
    )
    assert split_docstring("Add.\n\nArgs:\n    a:\n    b: A number.\n\nDone.") == ("Add.\n\nDone.", {"b": "A number."})
