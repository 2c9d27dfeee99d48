from inspect import cleandoc

from tests.support.table import table
from tui_agent.protocol.function_schema import split_docstring

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
