"""A full-screen terminal coding agent, and its engine for other programs: `from tui_agent import Agent, tool`.

Importing the package is cheap: each name loads its module on first use. The sub-packages (`tui_agent.agent`,
`tui_agent.tools`, …) have the same objects under the same names. `__init__.pyi` lists the names.
"""

__version__ = "0.1.0"

_MODULES: dict[str, str] = {}
"""Modules by the names they define, read from `__init__.pyi` when the first name is asked for."""


def __getattr__(name: str) -> object:
    """Load a name on first use (PEP 562).

    Raises:
        AttributeError: the package has no such name; the text suggests the closest one.
    """
    if name == "__all__":
        return sorted(_modules())
    if name.startswith("_") or name not in _modules():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}", name=name)
    found = getattr(__import__(f"{__name__}.{_MODULES[name]}", fromlist=(name,)), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return every name of the package, loaded or not."""
    return sorted({*globals(), *_modules()})


def _modules() -> dict[str, str]:
    if not _MODULES:
        # Imported here: the program itself never asks, and starts without.
        import ast

        with open(f"{__file__}i", encoding="utf-8") as stub:
            statements = ast.parse(stub.read()).body
        imports = (statement for statement in statements if isinstance(statement, ast.ImportFrom))
        _MODULES.update((alias.name, str(one.module)) for one in imports for alias in one.names)
    return _MODULES


def _hint(name: str) -> str:
    """Return a suggestion of the closest name; empty if no name is close."""
    if name.startswith("_"):
        return ""
    import difflib

    near = difflib.get_close_matches(name, _modules(), 1)
    return f"; did you mean {near[0]}?" if near else ""
