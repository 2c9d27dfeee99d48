"""Codes of warnings, errors and notices are frozen like the names of events: clients of a stream rely on them."""

import ast
from pathlib import Path

import pytest

import tui_agent

FROZEN = Path(__file__).with_name("frozen_codes.txt")
KINDS = {"Warned": "warning", "Failed": "error", "Noticed": "notice"}


def package() -> list[ast.Module]:
    return [ast.parse(path.read_text("utf-8")) for path in sorted(Path(tui_agent.__path__[0]).rglob("*.py"))]


def constants(modules: list[ast.Module]) -> dict[str, str]:
    """Return the module-level string constants."""
    found: dict[str, str] = {}
    for module in modules:
        for statement in module.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                    found[name] = text
                case _:
                    pass
    return found


def told_codes() -> set[str]:
    """Return `kind code` for each such event made in the package; each must name its code literally."""
    modules = package()
    named, codes = constants(modules), set[str]()
    for call in (node for module in modules for node in ast.walk(module) if isinstance(node, ast.Call)):
        kind = KINDS.get(call.func.id) if isinstance(call.func, ast.Name) else None
        for keyword in call.keywords if kind else ():
            match keyword:
                case ast.keyword(arg="code", value=ast.Constant(value=str(text))):
                    codes.add(f"{kind} {text}")
                case ast.keyword(arg="code", value=ast.Name(id=name)):
                    codes.add(f"{kind} {named[name]}")
                case ast.keyword(arg="code"):
                    codes.add(f"{kind} ?")
                case _:
                    pass
    return codes


@pytest.mark.slow
def test_codes_are_frozen() -> None:
    """Add new codes to the file deliberately; a removed code breaks clients."""
    assert sorted(told_codes()) == FROZEN.read_text("utf-8").splitlines()
