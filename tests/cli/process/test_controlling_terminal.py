"""Commands print only through functions that escape control characters."""

import ast
from pathlib import Path

import tui_agent.cli

COMMANDS = Path(tui_agent.cli.__file__).parent
DOORS = {"click.echo", "print", "sys.stdout.write", "sys.stderr.write", "click.secho"}


def test_commands_print_only_through_the_escaping_functions() -> None:
    past = [
        f"{file.name}:{node.lineno}"
        for file in COMMANDS.rglob("*.py")
        if file.name != "controlling_terminal.py"
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in DOORS
    ]

    assert past == []
