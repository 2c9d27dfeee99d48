"""Figures of the package's structure: `python -m tests.benchmarks.structure [FOLDER ...]`, run by hand.

Every figure is read from the source, nothing is imported. Without FOLDER the whole package is measured; with folders
(`ui`, `permissions`), only these. Figures are for comparing before and after; `tests/test_architecture.py` holds the
limits.
"""

import ast
import sys
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tui_agent"
ENGINE = ("agent", "context", "execution", "rewind", "session")
"""Folders below the screen that contain the engine."""

LONG_FUNCTION = 60
"""Lines above which a function counts as long."""

LAYOUT = {
    tokenize.ENCODING, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER
}  # fmt: skip
NO_WORDS = ("# noqa", "# pyright", "# fmt", "# ---")
"""Beginnings of comments for tools, and of headings."""

MOST_NAMED = 3
"""Extremes to list by name for each figure."""


@dataclass(frozen=True, slots=True)
class Module:
    """Source file."""

    name: str
    """Dotted name without the package: `ui.chat.chat_screen`."""
    folder: str
    """Folder below the package, such as `ui/screens`; "." for loose modules of the package."""
    lines: int
    tree: ast.Module
    imports: frozenset[str]
    """Names of the modules of this package that it imports, type-checking imports included."""


@cache
def modules() -> dict[str, Module]:
    """Return every module of the package by name; a package's `__init__` has the package's name."""
    paths = {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
    found: dict[str, Module] = {}
    for name, path in paths.items():
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        folder = path.parent.relative_to(PACKAGE).as_posix()
        imports = frozenset(_targets(tree, path, paths.keys()) - {name})
        found[name] = Module(name, folder, text.count("\n"), tree, imports)
    return found


def import_levels(members: dict[str, Module]) -> int:
    """Return how many modules the longest chain of imports within `members` has."""
    depth: dict[str, int] = {}

    def level(name: str) -> int:
        if name not in depth:
            depth[name] = 0  # A cycle, which the architecture test forbids, ends here.
            depth[name] = 1 + max((level(target) for target in members[name].imports if target in members), default=0)
        return depth[name]

    return max((level(name) for name in members), default=0)


@cache
def importers() -> Counter[str]:
    """Return the number of modules that import each module; re-exports of a package's `__init__` do not count."""
    return Counter(target for module in modules().values() if not _is_face(module.name) for target in module.imports)


def single_importers(members: dict[str, Module]) -> dict[str, str]:
    """Return modules with exactly one importer, in the same folder, each with that importer."""
    counted = importers()
    found: dict[str, str] = {}
    for name, module in members.items():
        if counted[name] == 1 and not _is_face(name):
            importer = next(m for m in modules().values() if name in m.imports and not _is_face(m.name))
            if importer.folder == module.folder:
                found[name] = importer.name
    return found


def functions(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the length in lines and the name of each function."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{module.name}:{node.name}"


def records(module: Module) -> Iterator[tuple[int, str]]:
    """Yield the number of annotated fields and the name of each class."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            yield sum(isinstance(line, ast.AnnAssign) for line in node.body), f"{module.name}:{node.name}"


def ui_files_on_engine() -> list[str]:
    """Return files of the screen that import the engine."""
    return [
        name
        for name, module in modules().items()
        if name.startswith("ui") and any(target.split(".")[0] in ENGINE for target in module.imports)
    ]


def protocols() -> list[str]:
    """Return the names of all Protocols, with their modules."""
    return [
        f"{module.name}:{node.name}"
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef)
        and any(ast.unparse(base).partition("[")[0] in ("Protocol", "typing.Protocol") for base in node.bases)
    ]


def cli_files_on_screen() -> list[str]:
    """Return files of the command line that import the screen."""
    return [
        name
        for name, module in modules().items()
        if is_in(name, "cli") and any(is_in(target, "ui") for target in module.imports)
    ]


def back_arrows(room: str) -> list[str]:
    """Return pairs of folders of a room that import each other, the less used direction of each pair first."""
    counted: Counter[tuple[str, str]] = Counter()
    members = {name: module for name, module in modules().items() if is_in(name, room)}
    for module in members.values():
        for target in module.imports:
            if target in members and members[target].folder != module.folder:
                counted[module.folder, members[target].folder] += 1
    return [
        f"{one} → {other} ({count} of {count + counted[other, one]})"
        for (one, other), count in sorted(counted.items())
        if counted[other, one] > count or (counted[other, one] == count and one < other)
    ]


def wide_modules(limit: int = 15) -> list[str]:
    """Return modules that import more than `limit` others, except those that put the program together."""
    return [
        name
        for name, module in modules().items()
        if len(module.imports) > limit and not is_in(name, "cli") and not is_in(name, "workbench")
    ]


def private_textual_imports() -> list[str]:
    """Return each import of a private module of Textual, with the module that has it."""
    return [
        f"{module.name}: {node.module}"
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("textual._")
    ]


def comment_share() -> float:
    """Return the comments with words per line of code in percent; docstrings and blank lines do not count as code."""
    comments = code = 0
    for path in PACKAGE.rglob("*.py"):
        lines: set[int] = set()
        with path.open("rb") as file:
            for token in tokenize.tokenize(file.readline):
                if token.type == tokenize.COMMENT:
                    comments += not token.string.startswith(NO_WORDS)
                elif token.type not in LAYOUT and not (token.type == tokenize.STRING and _is_alone(token)):
                    lines.update(range(token.start[0], token.end[0] + 1))
        code += len(lines)
    return 100 * comments / code


def is_in(name: str, room: str) -> bool:
    """True if a module is in a room, or is the room itself."""
    return name == room or name.startswith(f"{room}.")


def _house() -> None:
    """Print the figures of the whole house, each with its goal."""
    every = list(modules().values())
    found = protocols()
    on_screen = sum(is_in(name, "ui") for name in (one.partition(":")[0] for one in found))
    arrows = {room: back_arrows(room) for room in ("cli", "permissions", "workbench")}
    rows = (
        ("product lines · files", f"{sum(one.lines for one in every):,} · {len(every)}", "85,000 · 520"),
        ("Protocols · in ui", f"{len(found)} · {on_screen}", "25 · 6"),
        ("files of cli that import ui, beside the app's", str(len(cli_files_on_screen()) - 1), "0"),
        ("back arrows: cli · permissions · workbench", " · ".join(str(len(one)) for one in arrows.values()), "0 each"),
        ("fan-out over 15 outside cli and workbench", str(len(wide_modules())), "8"),
        ("files that only one neighbour imports", str(len(single_importers(modules()))), "60"),
        ("private Textual imports", str(len(private_textual_imports())), "4"),
        ("comments that say why per line of code", f"{comment_share():.1f} %", "3 %"),
    )
    for name, value, goal in rows:
        print(f"  {name:<46} {value:>14}   goal {goal}")


def _is_alone(token: tokenize.TokenInfo) -> bool:
    """True for a docstring: it begins its line, and has three quotes."""
    return not token.line[: token.start[1]].strip() and token.string.lstrip("r").startswith('"""')


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _is_face(name: str) -> bool:
    return (PACKAGE / name.replace(".", "/") / "__init__.py").exists()


def _targets(tree: ast.Module, path: Path, known: Collection[str]) -> set[str]:
    package = ["tui_agent", *path.relative_to(PACKAGE).parts[:-1]]
    named: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            named |= {f"{source}.{alias.name}" for alias in node.names}
    found: set[str] = set()
    for name in named:
        target = name.removeprefix("tui_agent.")
        while name.startswith("tui_agent.") and target and target not in known:
            target = target.rpartition(".")[0]
        if name.startswith("tui_agent.") and target:
            found.add(target)
    return found


def _top(pairs: Iterator[tuple[int, str]]) -> str:
    return ", ".join(f"{count} {name}" for count, name in sorted(pairs, reverse=True)[:MOST_NAMED])


def _report(title: str, members: dict[str, Module]) -> None:
    folders = Counter(module.folder for module in members.values())
    every = list(members.values())
    long = [name for module in every for lines, name in functions(module) if lines > LONG_FUNCTION]
    print(f"{title}: {len(members)} files, {sum(module.lines for module in every):,} lines")
    print(f"  files in one folder: {_top((count, folder) for folder, count in folders.items())}")
    print(f"  longest files: {_top((module.lines, module.name) for module in every)}")
    print(f"  fan-out: {_top((len(module.imports), module.name) for module in every)}")
    print(f"  import levels: {import_levels(members)}")
    print(f"  files that only one neighbour imports: {len(single_importers(members))}")
    print(f"  longest functions: {_top(pair for module in every for pair in functions(module))}")
    print(f"  functions over {LONG_FUNCTION} lines: {len(long)}")
    print(f"  largest records: {_top(pair for module in every for pair in records(module))}")


def main(folders: list[str]) -> None:
    """Print the figures of the package, or of `folders`."""
    if not folders:
        _report("tui_agent", modules())
        print(f"  files of ui/ that import the engine: {len(ui_files_on_engine())}")
        _house()
    for folder in folders or sorted({name.split(".")[0] for name, module in modules().items() if module.folder != "."}):
        _report(folder, {n: m for n, m in modules().items() if n == folder or n.startswith(f"{folder}.")})


if __name__ == "__main__":
    main(sys.argv[1:])
