"""Imports of a large library without the parts that are not needed.

Nothing is replaced: every part that is used later is imported then, and behaves as if it had been there.
"""

import ast
import sys
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast


@contextmanager
def hidden_package(name: str) -> Generator[None]:
    """Let imports inside the context find a package missing, unless it is loaded already."""
    loaded: dict[str, Any] = sys.modules
    if name in loaded:
        yield
        return
    # For Python, a module that is None here does not exist.
    loaded[name] = None
    try:
        yield
    finally:
        del loaded[name]


def load_names(package: str, names: Iterable[str], late: Collection[str] = ()) -> bool:
    """Load some names of a package, and only the modules that define them; return False if all of it is to be imported.

    The package's own `__init__` runs when something else of it is used. So does that of each package below it that only
    gathers names of its modules; all others run as always. The `late` modules, from which the others only take
    functions, are loaded when one is called. If the package is loaded already, or this fails, nothing of it is loaded.
    """
    if package in sys.modules:
        return False
    try:
        with _lazily(package, late):
            module = import_module(package)
            for name in names:
                getattr(module, name)
    except (ImportError, AttributeError, TypeError, NameError):
        # The errors of modules that import each other and rely on an order.
        for loaded in [name for name in sys.modules if _is_within(name, package)]:
            del sys.modules[loaded]
        return False
    for name in late:
        # Later imports find the real modules.
        if sys.modules.pop(name, None) is not None:
            parent, _, child = name.rpartition(".")
            delattr(sys.modules[parent], child)
    return True


@contextmanager
def _lazily(package: str, late: Collection[str] = ()) -> Generator[None]:
    """Load nothing of a package that waits until it is used."""
    finder = _LazyFinder(package, late)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _LazyFinder(MetaPathFinder):
    """Finds a package, those below it that only gather names, and the late modules, as lazy ones."""

    def __init__(self, top: str, late: Collection[str]) -> None:
        self._top = top
        self._late = late

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _is_within(fullname, self._top):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(loader := spec.loader, SourceFileLoader):
            return None
        if fullname in self._late:
            spec.loader = _LateModuleLoader(loader.name, loader.path)
            return spec
        if spec.submodule_search_locations is None:
            return None
        init = ast.parse(loader.get_data(loader.path)).body
        if fullname != self._top and not all(map(_only_gathers, init)):
            return None
        spec.loader = _LazyPackageLoader(loader.name, loader.path)
        spec.loader_state = dict(_gathered_names(init))
        return spec


class _LateModuleLoader(SourceFileLoader):
    """Loads a module that has only functions: each imports the real module when it is called."""

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        for statement in ast.parse(self.get_data(self.path)).body:
            if isinstance(statement, ast.FunctionDef):
                setattr(module, statement.name, partial(_call_late, name, statement.name))


def _call_late(module: str, function: str, *arguments: object, **options: object) -> object:
    with _lazily(module.partition(".")[0]):
        real = import_module(module)
    return getattr(real, function)(*arguments, **options)


class _LazyPackageLoader(SourceFileLoader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _LazyPackage(spec.name)
        module.__dict__["_places"] = spec.loader_state
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Leave the package's `__init__` for later."""

    def run_init(self, module: ModuleType) -> None:
        super().exec_module(module)


class _LazyPackage(ModuleType):
    """Package whose `__init__` runs when something is asked for that it does not simply take from a module."""

    _places: dict[str, tuple[str, str]]
    """Module and name for each name that `__init__` takes from a module of the package."""
    _has_run = False

    def __getattr__(self, name: str) -> object:
        """Import what was asked for: a name from its module, else a module of this name, else everything."""
        if name in self._places:
            module, original = self._places[name]
            value = getattr(import_module(f".{module}", self.__name__), original)
        # Python itself asks for such names, which must not run `__init__`.
        elif self._has_run or (name.startswith("__") and name != "__all__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        elif name != "__all__" and find_spec(f"{self.__name__}.{name}") is not None:
            value = import_module(f"{self.__name__}.{name}")
        else:
            self._has_run = True
            cast(_LazyPackageLoader, self.__loader__).run_init(self)
            return cast(object, getattr(self, name))
        # The next use of the name does not come here.
        setattr(self, name, value)
        return value

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *self._places}


def _is_within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def _only_gathers(statement: ast.stmt) -> bool:
    """True if a statement of an `__init__` has no effect but names from modules of the package."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.ImportFrom(module="__future__"):
            return True
        case _:
            return _is_gathering(statement)


def _is_gathering(statement: ast.stmt) -> bool:
    match statement:
        case ast.ImportFrom(level=1, module=str(), names=names):
            return all(one.name != "*" for one in names)
        case _:
            return False


def _gathered_names(statements: Iterable[ast.stmt]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each name that an `__init__` takes from a module of the package, with that module and its name there."""
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and _is_gathering(statement) and statement.module is not None:
            for one in statement.names:
                yield one.asname or one.name, (statement.module, one.name)
