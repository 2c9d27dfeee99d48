"""Runs commands under bubblewrap: all is read-only but the workspace, and there is no network (safety promise 10).

Enabled but unavailable means that nothing runs: there is no way from here to a command without the sandbox. Whether it
is available is not asked beforehand; bubblewrap itself says whether it came as far as starting the command.
"""

import os
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .placeholders import placeholder_for, placeholders
from .process import ProcessOutcome, ProcessSpec
from .programs import find_program
from .shielded_thread import run_shielded_in_thread

HOW_TO_HELP = (
    "Install bubblewrap (its program is called bwrap) or allow it to make user namespaces; `tui-agent doctor` tells "
    'whether it works. Or set sandbox = "off" in your settings, and commands run with your own rights.'
)
"""What a person can do where the sandbox does not work."""

_PRIVATE = ("/tmp", "/var/tmp", "/run")
"""Directories that each command gets anew: the sockets of other programs are in them, and each would be a way out."""
_STATUS_BYTES = 65_536
_STARTED = b'"exit-code"'
"""In bubblewrap's status once the command was really started and has ended."""
_SET_UP_FAILED = 1
_PROBE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class SandboxedRun:
    """One command, ready to be run in the sandbox."""

    spec: ProcessSpec
    """What to run."""
    status: int
    """Descriptor from which bubblewrap's status can be read; never blocks."""

    def refuse_unless_started(self, outcome: ProcessOutcome, output: bytes) -> None:
        """Tells a sandbox that could not be set up from a command that failed.

        Raises:
            ToolError: the command was not run.
        """
        if outcome.ending != "exited" or outcome.returncode != _SET_UP_FAILED or _STARTED in _read(self.status):
            return
        raise ToolError(_refusal(output.decode("utf-8", "replace").strip() or "bwrap says nothing"))


@dataclass(frozen=True, slots=True)
class Sandbox:
    """How commands are confined."""

    protected_places: Callable[[Path], Sequence[Path]]
    """The places below a workspace that stay read-only, whether they exist or not; asked before each command."""
    hidden: tuple[Path, ...] = ()
    """Our own settings and sessions: empty for the command."""
    shown: tuple[Path, ...] = ()
    """Directories in hidden places that may be read all the same, such as kept output."""
    network: bool = False
    """Whether commands may use the network."""

    @property
    def words(self) -> str:
        """What it means for a command, in a few words."""
        network = "with network" if self.network else "no network"
        return f"runs in the sandbox: {network}, and only the working directory can be written"

    @asynccontextmanager
    async def around(self, spec: ProcessSpec) -> AsyncGenerator[SandboxedRun]:
        """A command as it runs in the sandbox, for as long as the context is open.

        Raises:
            ToolError: there is no sandbox for this command, and it must not run.
        """
        held = ExitStack()
        try:
            yield await run_shielded_in_thread(partial(self._prepare, spec, held))
        finally:
            await run_shielded_in_thread(held.close)

    def arguments(self, root: Path, places: Sequence[Path], search_path: str) -> list[str]:
        """Bubblewrap's options for a command in `root`.

        Args:
            root: the workspace; absolute, links followed.
            places: what is bound read-only in it; everything exists.
            search_path: the command's PATH.
        """
        is_ours = any(root.is_relative_to(path) for path in self.hidden)
        inside = [path for path in self.hidden if path.is_relative_to(root)]
        options = ["--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session"]
        options += ["--cap-drop", "ALL", *([] if self.network else ["--unshare-net"])]
        options += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
        options += _each("--tmpfs", _PRIVATE)
        options += _shown([*_programs_in_private(search_path), *self._network_files()])
        options += _emptied(path for path in self.hidden if path not in inside)
        options += ["--ro-bind" if is_ours else "--bind", str(root), str(root)]
        options += [word for place in places for word in ("--ro-bind", str(place), str(place))]
        options += [*_emptied(inside), *_shown(self.shown)]
        options += _each("--remount-ro", (str(path) for path in self.hidden if path.is_dir()))
        return [*options, "--chdir", str(root)]

    def _network_files(self) -> list[Path]:
        """Where names are looked up lies in a private directory on many systems."""
        return [Path(os.path.realpath("/etc/resolv.conf"))] if self.network else []

    def _prepare(self, spec: ProcessSpec, held: ExitStack) -> SandboxedRun:
        """Finds out what there is to protect and puts the command together; `held` undoes it. Blocks."""
        root = spec.cwd
        bwrap = find_program("bwrap", root)
        if bwrap is None:
            raise ToolError(_refusal("no program of the name bwrap is on PATH outside the workspace"))
        if any(Path(place).is_relative_to(root) for place in (*_PRIVATE, "/dev", "/proc")):
            raise ToolError(f"The command was not run: the sandbox does not work with {root} as the working directory.")
        wanted = list(dict.fromkeys(placeholder_for(place) for place in self.protected_places(root)))
        links = [place for place in wanted if place.is_symlink()]
        if links:
            raise ToolError(f"The command was not run: {links[0]} is a link, which the sandbox cannot protect.")
        impossible = held.enter_context(placeholders(wanted))
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        held.callback(os.close, reading)
        held.callback(os.close, writing)
        environment = dict(spec.environment) | {"TMPDIR": "/tmp"}
        places = [place for place in wanted if place not in impossible]
        options = self.arguments(root, places, environment.get("PATH", os.defpath))
        argv = (str(bwrap), *options, "--json-status-fd", str(writing), "--", *spec.argv)
        ready = replace(spec, argv=argv, environment=environment, descriptors=(writing,), is_wrapped=True)
        return SandboxedRun(ready, reading)


def sandbox_problem(root: Path, *, network: bool = False) -> str | None:
    """Why commands cannot run in the sandbox here, found by running one that does nothing; None: they can. Blocks."""
    bwrap, bash = find_program("bwrap", root), find_program("bash", root)
    if bwrap is None or bash is None:
        return f"{'bwrap' if bwrap is None else 'bash'} is not installed"
    sandbox = Sandbox(lambda _: (), network=network)
    options = sandbox.arguments(Path(os.path.realpath(root)), (), os.environ.get("PATH", os.defpath))
    try:
        argv = [str(bwrap), *options, "--", str(bash), "--noprofile", "--norc", "-c", ":"]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    return None if done.returncode == 0 and not said else said or f"bwrap ended with code {done.returncode}"


def _refusal(why: str) -> str:
    return f'The command was not run: sandbox = "bwrap" is set, and it does not work here: {why}. {HOW_TO_HELP}'


def _programs_in_private(search_path: str) -> list[Path]:
    """The directories of PATH that a private directory would hide."""
    directories = [Path(directory) for directory in search_path.split(os.pathsep) if os.path.isabs(directory)]
    return [path for path in directories if any(path.is_relative_to(place) for place in _PRIVATE) and path.is_dir()]


def _emptied(paths: Iterable[Path]) -> list[str]:
    return _each("--tmpfs", (str(path) for path in paths if path.is_dir()))


def _shown(paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in ("--ro-bind-try", str(path), str(path))]


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _read(status: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(status, _STATUS_BYTES)
    return b""
