"""Hypothesis strategies for every model of the protocol, derived from its fields."""

import types
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel

from tui_agent.protocol.diffs import Diff

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(st.text(max_size=8), json_values, max_size=4)


def of_model(model: type[BaseModel]) -> st.SearchStrategy[Any]:
    """Return instances of a model with random values in every field."""
    return st.deferred(
        lambda: st.builds(
            model,
            **{name: of_annotation(info.annotation) for name, info in model.model_fields.items() if name != "fraction"},
        )
    )


def of_annotation(annotation: Any) -> st.SearchStrategy[Any]:
    """Return values that fit a type annotation."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return of_annotation(arguments[0])
    if origin in (Union, types.UnionType):
        return st.one_of([of_annotation(argument) for argument in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(of_annotation(arguments[0]), max_size=2).map(tuple)
    if origin is dict:
        return (
            json_objects if arguments[1] is Any else st.dictionaries(st.text(), of_annotation(arguments[1]), max_size=2)
        )
    if annotation is float:
        return st.floats(allow_nan=False, allow_infinity=False)
    if annotation is int:
        return st.integers(-(2**53), 2**53)
    if annotation is str:
        return st.text(st.characters(exclude_categories=["Cs"]))
    if annotation is Diff:
        return of_annotation(str).map(Diff)
    if annotation in (bool, type(None)):
        return st.booleans() if annotation is bool else st.none()
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    return of_model(annotation)
