"""The floor plan: allowed imports, no cycles, and the cost of importing the engine."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tui_agent
from tests.benchmarks import structure
from tests.support.table import table

PACKAGE = Path(tui_agent.__file__).parent

SAME_FLOOR = {
    "context",
    "execution",
    "permissions",
    "providers",
    "tools",
    "settings",
    "definitions",
    "mcp",
    "tracing",
    "hook_files",
    "lsp",
    "trial",
}
PARTS_OF_THE_SCREEN = ("base", "text", "transcript", "panel", "composer", "state")
FRONT_ENDS = ("ui", "headless", "library", "acp", "serve")
MAY_IMPORT: dict[str, set[str]] = {
    "protocol": set(),
    "prelude": set(),
    "walls": {"protocol"},
    "git": {"protocol", "walls"},
    **{room: {"protocol"} for room in SAME_FLOOR},
    "permissions": {"protocol", "git"},
    "tools": {"protocol", "git", "walls"},
    "trial": {"protocol", "git", "walls"},
    "agent": {"protocol", "context", "execution"},
    "session": {"protocol"},
    "rewind": {"protocol", "session", "tools", "agent"},
    **{f"ui.{part}": {"protocol", "ui"} for part in PARTS_OF_THE_SCREEN},
    "ui": {"protocol", "ui", "workbench"},
    "ui.app": {"prelude", "protocol", "settings", "ui", "workbench"},
    "ui.fleet": {"fleet", "protocol", "ui", "workbench"},
    "headless": {"protocol", "workbench"},
    "acp": {"protocol", "workbench"},
    "fleet": {"protocol", "git"},
    "serve": {"protocol", "tools"},
    "library": {
        *("protocol", "context", "execution", "permissions", "providers", "tools", "trial", "agent"),
        *("mcp", "tracing"),
    },
    "workbench": {"protocol", "git", "walls", *SAME_FLOOR, "agent", "session", "rewind"},
    "cli": {
        *("prelude", "protocol", "git", "walls", "agent", "session", "rewind", "workbench", "fleet"),
        *SAME_FLOOR,
        *FRONT_ENDS,
    },
    "__main__": {"cli", "prelude"},
}
NEVER: dict[str, set[str]] = {
    **{f"ui.{part}": {"ui.bridge", "ui.chat", "ui.app"} for part in PARTS_OF_THE_SCREEN},
    "ui.bridge": {"ui.transcript", "ui.panel", "ui.chat", "ui.app"},
    "ui.chat": {"ui.app"},
}
ONLY_IN = {
    "textual": "ui",
    "anthropic": "providers",
    "openai": "providers",
    "boto3": "providers",
    "botocore": "providers",
    "google": "providers",
    "yaml": "definitions",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "pygls": "lsp",
    "lsprotocol": "lsp",
    "opentelemetry": "tracing",
    "acp": "acp",
    "dask": "fleet",
    "distributed": "fleet",
    "aiohttp": "serve",
}


@cache
def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file; all tests share it, because parsing the package takes seconds."""
    return structure.modules()[name_of(path)].tree


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Absolute names of everything a file imports, wherever in the file, `TYPE_CHECKING` blocks included."""
    package = ["tui_agent", *path.relative_to(PACKAGE).parts[:-1]]
    found: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def room_of(name: str) -> str:
    """The most specific room of the plan that holds a module."""
    return max((room for room in MAY_IMPORT if name == room or name.startswith(f"{room}.")), key=len, default="")


def ours(path: Path) -> set[str]:
    return {name.removeprefix("tui_agent.") for name in imports_of(path) if name.startswith("tui_agent.")}


def is_below(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def test_a_room_imports_only_what_the_plan_allows() -> None:
    rooms = {name: room_of(name) for path in modules() if (name := name_of(path))}
    assert [name for name, room in rooms.items() if not room] == [], "modules in no room of the plan"

    found: list[str] = []
    for path in modules():
        name = name_of(path)
        if not name:
            continue  # Its face may name everything; what loading it costs has a test of its own.
        room = rooms[name]
        for target in ours(path):
            if target.startswith("__version__"):
                continue
            inside = is_below(target, room.split(".")[0])
            allowed = any(is_below(target, place) for place in MAY_IMPORT[room])
            forbidden = any(is_below(target, bad) for bad in NEVER.get(room, ()))
            if forbidden or not (inside or allowed):
                found.append(f"{name} may not import {target}")

    assert found == []


def test_textual_and_the_sdk_stay_in_their_rooms() -> None:
    for library, room in ONLY_IN.items():
        importers = [
            name_of(path) for path in modules() if any(is_below(target, library) for target in imports_of(path))
        ]

        assert [name for name in importers if name.split(".")[0] != room] == []


FOLDERS_OF_THE_SCREEN = (
    *("base", "text", "bridge", "state", "panel", "transcript"),
    *("composer", "dialogs", "approval", "chat", "replay", "app", "fleet"),
)
"""Folders of `ui`, lowest first."""
MOST_LINES, MOST_METHODS, MOST_ATTRIBUTES = 300, 30, 10
"""Limits of the main screen with its bases."""


def test_a_folder_of_the_screen_imports_only_lower_ones() -> None:
    found: list[str] = []
    for path in modules():
        if not (name := name_of(path)).startswith("ui."):
            continue
        allowed = FOLDERS_OF_THE_SCREEN[: FOLDERS_OF_THE_SCREEN.index(name.split(".")[1]) + 1]
        targets = [target for target in ours(path) if target.startswith("ui.")]
        found += [f"{name} may not import {target}" for target in targets if target.split(".")[1] not in allowed]

    assert found == []


FOLDS = {"CallLedger", "TranscriptFold", "RunTimes", "SessionStatus", "WaitingMessages", "PendingApprovals"}
"""Folds behind the screen; widgets draw them and have none of their own."""


def test_only_the_state_of_the_screen_has_folds() -> None:
    makers = {
        (node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func), name_of(path))
        for path in modules()
        if name_of(path).startswith("ui.")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
    }

    assert {pair for pair in makers if pair[0] in FOLDS} == {(fold, "ui.chat.screen_state") for fold in FOLDS}
    assert [maker for made, maker in makers if made == "ScreenState"] == ["ui.chat.chat_screen"]


def test_the_main_screen_stays_small() -> None:
    classes = {
        node.name: node
        for path in modules()
        if name_of(path).startswith("ui.")
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef)
    }
    lines, methods, attributes, waiting = 0, 0, set[str](), ["ChatScreen"]
    while waiting:
        if (node := classes.get(waiting.pop())) is None:
            continue
        lines += (node.end_lineno or node.lineno) - node.lineno + 1
        methods += sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)
        attributes |= {
            part.attr
            for part in ast.walk(node)
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and ast.unparse(part.value) == "self"
        }
        waiting += [ast.unparse(base).partition("[")[0] for base in node.bases]

    assert lines <= MOST_LINES
    assert methods <= MOST_METHODS
    assert len(attributes) <= MOST_ATTRIBUTES, sorted(attributes)


MOST_LEVELS = 12
"""Modules of the longest chain of imports within `ui`."""


def test_the_screen_is_a_few_levels_high() -> None:
    members = {name: module for name, module in structure.modules().items() if name.startswith("ui.")}

    assert structure.import_levels(members) <= MOST_LEVELS


def test_there_is_no_cycle_of_imports() -> None:
    names = {name_of(path): path for path in modules()}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        targets: set[str] = set()
        for target in ours(path):
            while target and target not in names:
                target = target.rpartition(".")[0]
            if target and target != name and not is_package_of(target, name, names):
                targets.add(target)
        graph[name] = targets
    TopologicalSorter(graph).prepare()  # Its error names the cycle.


def is_package_of(target: str, name: str, names: dict[str, Path]) -> bool:
    """Return True if `target` is a package that contains the module `name`."""
    return names[target].name == "__init__.py" and is_below(name, target)


def test_no_module_imports_from_a_package_that_contains_it() -> None:
    names = {name_of(path) for path in modules()}
    packages = {name_of(path) for path in modules() if path.name == "__init__.py"}
    found: list[str] = []
    for path in modules():
        if path.name == "__init__.py":
            continue
        for target in ours(path):
            holder = target.rpartition(".")[0]
            if holder and holder in packages and target not in names and is_below(name_of(path), holder):
                found.append(f"{name_of(path)} imports {holder} it is in")

    assert found == []


@table("room", ["cli", "permissions", "workbench"])
def test_folders_of_a_room_import_each_other_in_one_direction(room: str) -> None:
    assert structure.back_arrows(room) == []


def test_only_one_module_starts_git() -> None:
    starts = re.compile(r"""(?:find_program|which|run|Popen|exec)\(\s*[(\[]?\s*['"]git['"]""")
    found = [path.relative_to(PACKAGE).as_posix() for path in modules() if starts.search(path.read_text("utf-8"))]

    assert found == ["git/git_program.py"]


def test_file_names_are_unique_in_the_package() -> None:
    counted = Counter(path.name for path in modules() if path.name != "__init__.py")

    assert [name for name, count in counted.items() if count > 1] == []


ENGINE = (
    *("protocol", "execution", "permissions", "context", "agent", "providers", "tools", "session", "rewind"),
    *("headless", "fleet.worker_messages", "library", "cli"),
)


@pytest.mark.slow
@table(
    ("modules", "unwanted"),
    [
        # In one process: what the first of them loads, all others may load for nothing.
        (tuple(f"tui_agent.{name}" for name in ENGINE), {"textual", "anthropic", "openai", "httpx2", "distributed"}),
        (("tui_agent.acp.editor_agent",), {"textual", "anthropic", "httpx2", "mcp"}),
        (("tui_agent.serve.browser_server",), {"textual", "anthropic", "mcp", "tui_agent.agent"}),
        (
            ("tui_agent.cli.screen_entry", "tui_agent.ui.app.app_start"),
            {"anthropic", "tui_agent.agent", "tui_agent.tools", "tui_agent.workbench.plugins", "psutil"},
        ),
    ],
)
def test_importing_the_engine_loads_neither_screen_nor_sdk(modules: tuple[str, ...], unwanted: set[str]) -> None:
    script = f"""
import importlib, sys
for name in {modules!r}:
    importlib.import_module(name)
    print(*(f"{{name}} loads {{found}}" for found in {sorted(unwanted)!r} if found in sys.modules), sep="\\n")
"""
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert loaded == []


def test_importing_the_package_loads_nothing_else() -> None:
    script = "import sys; before = set(sys.modules); import tui_agent; print(*sorted(set(sys.modules) - before))"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert loaded == ["tui_agent"]


OF_EXTRAS = (
    *("PIL", "acp", "aiohttp", "bs4", "cryptography", "dask", "distributed", "httpx2", "jsonschema", "markdownify"),
    *("lsprotocol", "mcp", "mcp_types", "opentelemetry", "pygls", "textual_image", "textual_serve", "tomlkit"),
    *(f"tui_agent.{room}" for room in ("acp", "fleet", "lsp", "mcp", "serve", "tools.web", "tracing")),
)
"""Libraries and rooms that cost only those who use them."""


def test_a_start_loads_nothing_of_what_is_not_used() -> None:
    script = (
        "import sys, tui_agent.cli.screen_entry, tui_agent.ui.app.app_start, tui_agent.workbench.workbench;"
        f"unwanted = tuple(name + '.' for name in {OF_EXTRAS!r});"
        "print(*(name for name in sys.modules if (name + '.').startswith(unwanted)))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()

    assert loaded == []


@pytest.mark.slow
def test_every_task_belongs_to_a_group() -> None:
    forbidden = {"create_task", "ensure_future", "gather"}
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in forbidden:
                owner = ast.unparse(node.func.value)
                allowed = node.func.attr == "create_task" and ("group" in owner or "tasks" in owner)
                assert allowed, f"{name_of(path)}:{node.lineno}: {ast.unparse(node.func)}"


def raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


CATCHES_BROADLY = {"protocol.background", "protocol.callbacks", "ui.base.error_boundary"}
"""Modules outside `execution` that call listeners or tools of other programs, draw, or run services beside a run."""


@pytest.mark.slow
def test_errors_are_caught_broadly_only_around_tools_hooks_listeners_services_and_drawing() -> None:
    """A handler that cleans up and raises again does not count."""
    for path in modules():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ExceptHandler) and not raises_again(node):
                caught = ast.unparse(node.type) if node.type else "everything"
                if caught in ("everything", "Exception", "BaseException"):
                    allowed = name_of(path).startswith("execution.") or name_of(path) in CATCHES_BROADLY
                    assert allowed, f"{name_of(path)}:{node.lineno}: catches {caught}"


READS_WITHOUT_BLOCKING = {
    "tui_agent.protocol.regular_file.open_for_reading": {"tools.pinned_directory"},
    "tui_agent.protocol.regular_file.read_regular_file_async": {
        "workbench.live_settings",
        "ui.app.themes",
    },
    "tui_agent.tools.pinned_directory.open_file": {
        "workbench.sessions.prompt_files",
        "tools.file_change",
        "tools.grep_tool",
        "tools.read_tool",
    },
}
"""Functions that read a file through `aiofiles`, and the modules that import them."""

BLOCKS = {
    "tui_agent.tools.pinned_directory.open_regular_file": {
        "rewind.session_changes",
        "tools.search.content_search",
        "tools.file_states",
        "tools.grep_tool",
    }
}
"""Function that blocks, and the modules that call it: only in threads, for many files in one go."""


def importers_of(name: str) -> set[str]:
    return {name_of(path) for path in modules() if any(is_below(target, name) for target in imports_of(path))}


def test_files_of_tools_and_settings_are_read_through_aiofiles() -> None:
    tree = ast.parse((PACKAGE / "protocol" / "regular_file.py").read_text("utf-8"))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}

    assert "aiofiles.open" in calls
    for function, importers in (READS_WITHOUT_BLOCKING | BLOCKS).items():
        assert importers_of(function) == importers, function


MAX_FUNCTION_LINES, MAX_FIELDS = 60, 20
LARGE_RECORDS = {
    "agent.loop_config:AgentLoopConfig": "public options of an agent",
    "execution.options:ExecutionOptions": "public options of the executor",
    "settings:Settings": "every setting, by its name in the files",
}
"""Classes with more fields than `MAX_FIELDS`, and why."""


def test_no_function_is_too_long() -> None:
    measured = [pair for module in structure.modules().values() for pair in structure.functions(module)]

    assert [pair for pair in measured if pair[0] > MAX_FUNCTION_LINES] == []


def test_records_stay_small() -> None:
    measured = [pair for module in structure.modules().values() for pair in structure.records(module)]

    assert {name for fields, name in measured if fields > MAX_FIELDS} == set(LARGE_RECORDS)


def test_the_screen_has_no_loose_module_and_at_most_thirteen_folders() -> None:
    assert [path.name for path in (PACKAGE / "ui").glob("*.py")] == ["__init__.py"]
    assert len([path for path in (PACKAGE / "ui").iterdir() if (path / "__init__.py").exists()]) <= 13


MOST_PROTOCOLS, MOST_PROTOCOLS_OF_THE_SCREEN, MOST_PRIVATE_IMPORTS = 25, 2, 3
"""Limits that only ever fall: each is what there is."""


def test_front_ends_reach_the_session_without_a_protocol_of_their_own() -> None:
    found = structure.protocols()

    assert len(found) <= MOST_PROTOCOLS, found
    assert len([name for name in found if name.startswith("ui.")]) <= MOST_PROTOCOLS_OF_THE_SCREEN


def test_only_the_file_that_starts_the_app_imports_the_screen() -> None:
    assert structure.cli_files_on_screen() == ["cli.screen_entry"]


def test_few_private_modules_of_textual_are_imported() -> None:
    assert len(structure.private_textual_imports()) <= MOST_PRIVATE_IMPORTS
