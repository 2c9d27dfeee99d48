"""Paths outside the workspace that a confined command sees, read-only; everything else is absent (safety promise 10).

These are the system's programs and libraries, of the home what PATH leads to, tools and caches by a list, and the
repository around the workspace. A list of what to hide would never be complete.
"""

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.regular_file import read_regular_file

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/sys",
           "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/alternatives", "/var/lib/ca-certificates", "/var/lib/texmf",
           "/var/cache/fontconfig")  # fmt: skip
"""Directories of programs and their data, which hold no secrets of a user."""
_ETC = (
    "passwd", "group", "nsswitch.conf", "hosts", "protocols", "services", "resolv.conf", "ld.so.*", "ld-*", "mtab",
    "alternatives", "localtime", "timezone", "ssl", "pki", "crypto-policies", "fonts", "magic*", "mime.types",
    "gitconfig", "gitattributes", "python*", "perl", "java*", "jvm*", "maven", "php*", "R", "octave*", "texmf",
    "man*", "ImageMagick*", "os-release", "*-release", "*_version", "OpenCL", "vulkan", "glvnd",
)  # fmt: skip
"""Settings of the system in /etc, as far as everyone may read them."""
_ETC_DEPTH = 2
"""Levels of directories in /etc at which files that not everyone may read are left out."""

_TOOLS = (
    ".local/lib", ".local/pipx", ".local/share/uv", ".local/share/pipx", ".local/share/mise", ".local/share/rtx",
    ".local/share/fnm", ".local/share/virtualenvs", ".local/share/hatch", ".local/share/pypoetry", ".local/share/pnpm",
    ".pyenv", ".virtualenvs", ".rbenv", ".nodenv", ".nvm", ".fnm", ".volta", ".asdf", ".sdkman", ".jenv", ".goenv",
    ".rustup", ".ghcup", ".elan", ".cargo/bin", ".cargo/registry", ".cargo/git", "go/bin", "go/pkg", "sdk",
    ".m2/repository", ".m2/wrapper", ".gradle/caches", ".gradle/wrapper", ".gradle/jdks", ".ivy2/cache", ".sbt/boot",
    ".nuget/packages", ".dotnet", ".npm/_cacache", ".npm/_npx", ".npm-global/bin", ".npm-global/lib", ".yarn/berry",
    ".bun/bin", ".bun/install", ".deno/bin", ".gem/ruby", ".bundle/cache", ".pub-cache/hosted", ".mix/archives",
    ".cabal/packages", ".cabal/store", ".stack/programs", ".stack/snapshots", ".julia/packages", ".julia/artifacts",
    ".julia/compiled", ".julia/registries", ".julia/juliaup", ".conan2/p", ".terraform.d/plugin-cache", ".conda/envs",
    ".conda/pkgs", ".config/git/ignore", ".config/git/attributes", ".gitignore", ".gitignore_global", ".gitattributes",
)  # fmt: skip
"""Tools, packages and caches in a home that PATH need not name."""
_CACHES = (
    "pip", "uv", "pypoetry", "pdm", "hatch", "pre-commit", "go-build", "golangci-lint", "gopls", "ms-playwright",
    "puppeteer", "Cypress", "electron", "prisma", "node-gyp", "node", "yarn", "pnpm", "deno", "typescript", "ccache",
    "sccache", "bazelisk", "mypy", "ruff", "black", "matplotlib", "fontconfig", "torch", "huggingface/hub",
    "huggingface/datasets", "coursier", "composer", "zig", "clangd",
)  # fmt: skip
"""Directories in `~/.cache`."""
_CONDA = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")

_MOVED = {
    "XDG_CACHE_HOME": ".cache", "XDG_DATA_HOME": ".local/share", "CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup",
    "GOPATH": "go", "PYENV_ROOT": ".pyenv", "RBENV_ROOT": ".rbenv", "NVM_DIR": ".nvm", "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf", "SDKMAN_DIR": ".sdkman", "GRADLE_USER_HOME": ".gradle", "BUN_INSTALL": ".bun",
    "WORKON_HOME": ".virtualenvs",
}  # fmt: skip
"""Directories in a home by the variable that replaces them."""
_NAMED_BY = (
    "GOMODCACHE", "GOCACHE", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "PIP_CACHE_DIR", "CCACHE_DIR", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
    "PIP_CERT",
)  # fmt: skip
"""Variables that name caches and certificates."""
_INSTALLED_AT = ("JAVA_HOME", "GOROOT", "CONDA_PREFIX", "CONDA_ROOT")
"""Variables that name installations."""

_VARIABLES = (*_MOVED, *_NAMED_BY, *_INSTALLED_AT)
_SECONDS_KNOWN = 5
"""Time for which the places are remembered."""

_PROGRAMS = frozenset({"bin", "sbin", "shims", "condabin"})
"""Names of directories with programs; an installation has more beside them."""
_INSTALLATION = (
    "bin", "sbin", "lib", "lib32", "lib64", "libexec", "include", "share", "shims", "versions", "toolchains", "tools",
    "plugins", "installs", "envs", "pkgs", "condabin", "conda-meta", "pyvenv.cfg", "jmods", "jre", "conf", "release",
    "pkg", "VERSION", "go.env", "ssl",
)  # fmt: skip
"""Names of an installation that programs need; settings and credentials of the program may be beside them."""
_OF_WINDOWS = re.compile(r"/mnt/[a-z](?:/|$)")
_HOMES = ("/home", "/root")
"""Directories of homes, or homes."""
_HOME_NAMES = frozenset({"home", "homes", "Users", "users"})
"""Names of other directories of homes, recognised if the user's own home is in one."""
_MOST_INSTALLATIONS = 200
"""Most directories of programs that are followed, from PATH and from the links in them."""


@dataclass(frozen=True, slots=True)
class VisiblePlaces:
    """Paths outside the workspace that a command sees; none is inside another one."""

    shown: Mapping[str, str]
    """Path in the sandbox, and the path that is there, links followed; parents come first."""
    links: Mapping[str, str]
    """Links of the file system's top and of the home, with their targets."""
    channels: tuple[str, ...]
    """Sockets and pipes in what is shown: other programs listen there, so that they have to be covered."""


def visible_places(root: Path, search_path: str, environment: Mapping[str, str]) -> VisiblePlaces:
    """Return the paths that a command sees beside its workspace. Blocks.

    Args:
        root: the workspace, links followed.
        search_path: the command's PATH.
        environment: variables that may name other directories of tools.
    """
    named = tuple((name, value) for name in _VARIABLES if (value := environment.get(name)))
    period = int(time.monotonic() / _SECONDS_KNOWN)
    shown, links, channels = _collected(
        root, search_path, named, own_home(), homes_of_others(), _modified("/etc"), period
    )
    # Sockets that were bound since then are covered, too.
    covered = {*channels, *_bound_sockets()}
    return VisiblePlaces(shown, links, tuple(sorted(path for path in covered if _is_below(path, shown))))


@lru_cache(maxsize=16)
def _collected(
    root: Path, search_path: str, named: tuple[tuple[str, str], ...], *_: object
) -> tuple[Mapping[str, str], Mapping[str, str], frozenset[str]]:
    """Return what is shown, links, and channels; remembered for a moment, because bash starts in less time."""
    environment = dict(named)
    found = _Collection(root)
    for name in _SYSTEM:
        found.add(name)
    for name in _etc_names("/etc", _modified("/etc")):
        found.add_setting(name)
    for directory in (*search_path.split(os.pathsep), *_installations(environment)):
        if os.path.isabs(directory) and not _OF_WINDOWS.match(directory):
            found.add_programs(os.path.normpath(directory))
    for path in (*_tools_of_home(environment), *_repositories(root)):
        found.add(path)
    return _outermost(found.shown), found.links, frozenset(found.channels)


def own_home() -> Path:
    """Return the user's home, links followed."""
    return Path(os.path.realpath(os.path.expanduser("~")))


def homes_of_others() -> tuple[Path, ...]:
    """Return the existing directories of homes, and root's home; never the user's own, which may be in one of them."""
    own = own_home()
    around = [own.parent] if own.parent.name in _HOME_NAMES else []
    found = dict.fromkeys([*map(Path, _HOMES), *around])
    return tuple(path for path in found if path != own and path.is_dir())


class _Collection:
    """The places to show, with what the links in directories of programs lead to."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._homes = [str(path) for path in (own_home(), *homes_of_others())]
        self._followed: set[str] = set()
        self.links = {link: os.readlink(link) for link in _links_of_top()}
        if (home := os.path.expanduser("~")) not in self._homes and not _is_below(home, self.links):
            self.links[home] = self._homes[0]
        self.shown: dict[str, str] = {}
        self.channels: set[str] = set()

    def add(self, path: str) -> None:
        """Show a path at its place, and at the one that its links lead to."""
        # Most are missing, and following links takes a look at each part of a path.
        if not os.path.exists(path):
            return
        real = os.path.realpath(path)
        # Nothing that contains a home, as a PATH of `/` or `~` would.
        if any(_is_within(place, real) for place in (*self._homes, "/tmp")):
            return
        for place in (real, path):
            if not _is_below(place, (*self.links, self._root)):
                self.shown[place] = real

    def add_setting(self, path: str) -> None:
        """Show the contents of a file or directory at its path; a link into /proc stays one."""
        real = os.path.realpath(path)
        if real.startswith("/proc/"):
            self.links[path] = os.readlink(path)
        else:
            self.shown[path] = real

    def add_programs(self, directory: str) -> None:
        """Show a directory of programs with its installation, and what its links lead to."""
        for place in dict.fromkeys((directory, os.path.realpath(directory))):
            # Links in the workspace are anyone's, who could have any file shown.
            if place in self._followed or len(self._followed) > _MOST_INSTALLATIONS or _is_within(place, self._root):
                continue
            self._followed.add(place)
            self.add(place)
            parent, name = os.path.split(place)
            if name in _PROGRAMS and parent not in (*self._homes, "/", "/usr", "/usr/local"):
                for beside in ("lib",) if os.path.basename(parent) == ".local" else _INSTALLATION:
                    self.add(f"{parent}/{beside}")
            targets, channels = _entries(place, _modified(place))
            self.channels.update(channels)
            for target in targets:
                self._add_target(target)

    def _add_target(self, target: str) -> None:
        if _is_below(target, self.shown.values()):
            return
        directory = os.path.dirname(target)
        if "node_modules" in target.split("/"):
            self.add(f"{target.partition('/node_modules/')[0]}/node_modules")
        elif os.path.basename(directory) in _PROGRAMS:
            self.add_programs(directory)
        else:
            self.add(directory if _is_within(target, "/opt") and directory != "/opt" else target)


@lru_cache(maxsize=256)
def _entries(directory: str, modified: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what the links in a directory lead to, and the sockets and pipes in it."""
    targets: list[str] = []
    channels: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    targets.append(os.path.realpath(entry.path))
                elif not entry.is_file(follow_symlinks=False) and not entry.is_dir(follow_symlinks=False):
                    channels.append(entry.path)
    except OSError:
        pass
    kept = (path for path in dict.fromkeys(targets) if not path.startswith(("/usr/", directory + "/")))
    return tuple(path for path in kept if os.path.exists(path)), tuple(channels)


@lru_cache(maxsize=16)
def _etc_names(directory: str, modified: int, depth: int = 0) -> tuple[str, ...]:
    """Return the settings of the system that everyone may read; a directory as a whole where all in it may be read."""
    found: list[str] = []
    for name in sorted(os.listdir(directory)):
        if depth or any(fnmatchcase(name, pattern) for pattern in _ETC):
            found += _readable(f"{directory}/{name}", depth)
    return tuple(found)


def _readable(path: str, depth: int) -> Iterable[str]:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return ()
    if not mode & stat.S_IROTH or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return ()
    if depth >= _ETC_DEPTH or not stat.S_ISDIR(mode):
        return (path,)
    inside = _etc_names(path, 0, depth + 1)
    return (path,) if inside == tuple(f"{path}/{name}" for name in sorted(os.listdir(path))) else inside


def _tools_of_home(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield tools, packages and caches, also where variables put them."""
    home = own_home()
    conda = [f"{name}/{part}" for name in _CONDA for part in ("bin", "lib", "envs", "pkgs", "ssl")]
    names = [*_TOOLS, *conda, *(f".cache/{name}" for name in _CACHES)]
    yield from (f"{home}/{name}" for name in names)
    for variable, usual in _MOVED.items():
        if os.path.isabs(new := environment.get(variable, "")):
            yield from (os.path.normpath(new + name[len(usual) :]) for name in names if _is_within(name, usual))
    yield from (os.path.normpath(path) for name in _NAMED_BY if os.path.isabs(path := environment.get(name, "")))


def _installations(environment: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{path}/bin" for name in _INSTALLED_AT if os.path.isabs(path := environment.get(name, "")))


def _repositories(root: Path) -> Iterator[str]:
    """Yield the repository around the workspace, and the one to which a linked work tree belongs."""
    around = _work_tree_around(root)
    # A repository of settings, such as `~/.config`, is in directories with credentials.
    if around not in (None, root) and not any(part.startswith(".") for part in around.parts):
        yield str(around)
    yield from map(str, repository_directories(root))


def repository_directories(root: Path) -> tuple[Path, ...]:
    """Return the directories outside the workspace in which git stores its repository, links followed. Blocks."""
    around = _work_tree_around(root)
    if around is None:
        return ()
    own = around / ".git"
    pointer = _line_of(own).removeprefix("gitdir: ")
    if not pointer:
        return () if around == root or own.is_symlink() else (own,)
    directory = Path(os.path.realpath(around / pointer))
    # Only git's own record shows that the work tree is one of that repository: the workspace could name any.
    if _line_of(directory / "gitdir") == str(own):
        return (directory.parent.parent,)
    modules = (parent / ".git" / "modules" for parent in around.parents)
    return (directory,) if any(directory.is_relative_to(place) for place in modules) else ()


def _work_tree_around(root: Path) -> Path | None:
    return next((path for path in (root, *root.parents) if os.path.lexists(path / ".git")), None)


def _line_of(file: Path) -> str:
    try:
        return read_regular_file(str(file)).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _bound_sockets() -> list[str]:
    """Return the sockets of programs outside the sandbox, by their path in the file system. Blocks.

    A program that listens at one does its work outside: a read-only mount does not prevent a connection.
    """
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return []
    # The eighth column is the path, as the program gave it; those with @ are not in the file system.
    names = [columns[7] for line in lines if len(columns := line.split(None, 7)) > 7 and columns[7][0] != "@"]
    directories = _working_directories() if any(not os.path.isabs(name) for name in names) else ()
    paths = {os.path.realpath(os.path.join(place, name)) for name in names for place in (*directories, "/")}
    return [path for path in paths if _is_socket(path)]


def _working_directories() -> set[str]:
    """Return the working directories of all processes: names of sockets may be relative to one."""
    found: set[str] = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            found.add(os.readlink(f"/proc/{name}/cwd"))
        except OSError:
            continue
    return found


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _links_of_top() -> list[str]:
    with os.scandir("/") as entries:
        return sorted(entry.path for entry in entries if entry.is_symlink())


def _outermost(shown: Mapping[str, str]) -> dict[str, str]:
    """Return the places that are not inside another one."""
    kept: dict[str, str] = {}
    for path in sorted(shown, key=lambda path: path.split("/")):
        if not _is_below(path, kept):
            kept[path] = shown[path]
    return kept


def _modified(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return 0


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(_is_within(path, place) for place in places)


def _is_within(path: str, place: str) -> bool:
    return path == place or path.startswith(place.rstrip("/") + "/")
