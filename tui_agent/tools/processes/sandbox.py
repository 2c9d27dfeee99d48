"""Running of commands under bubblewrap: only the workspace is writable, and there is no network (safety promise 10).

If the sandbox is enabled but does not work, no command runs: this module never falls back to one without it. It does
not test the sandbox beforehand; the status that bubblewrap reports tells whether it started the command.
"""

import errno
import fcntl
import os
import stat
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from tui_agent.git.personal_settings import plain_git_settings
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.programs import find_program
from tui_agent.tools.shielded_thread import run_shielded_in_thread
from tui_agent.walls.refusals import NETWORK_ERRORS, refusals
from tui_agent.walls.visible_places import visible_places
from tui_agent.walls.wall_options import covered, hidden_options, impossible_root, is_channel, system_options

from .process import ProcessOutcome, ProcessSpec

HOW_TO_HELP = (
    "Install bubblewrap (its program is called bwrap) or allow it to create user namespaces; `tui-agent doctor` checks "
    'whether it works. Or set sandbox = "off" in your settings; commands then run with your own rights.'
)
"""Advice to the user if the sandbox does not work."""

LEAVE_SANDBOX = "To run it outside, repeat the call with `sandbox: false`, which asks the user."
"""Advice to the model on a command that the sandbox keeps from its work."""

_MISSING = "bwrap is not on PATH outside the workspace"
_READ_ONLY = "only the working directory is writable, and no protected name in it"
_FILE_ERRORS = (
    (_READ_ONLY, ("Read-only file system", "EROFS", "read-only file system")),
    ("protected names and the directories above them cannot be moved", ("Device or resource busy", "EBUSY", "EXDEV")),
    ("commands have no privileges in it", ("Operation not permitted", "EPERM")),
)
"""Restrictions, and the messages of programs that meet them."""
_KEPT_IN_REPOSITORY = ("hooks", "info", "modules", "worktrees", "objects/info")
"""Directories of a repository with what starts programs or leads elsewhere; they stay read-only even while git records
changes."""
_KEPT_FILES = ("config", "config.worktree", "commondir")
"""Files of a repository of that kind, as far as they exist."""

PLACEHOLDER_MODE = 0o1755
"""Mode of a placeholder; a real directory of such a name never has the sticky bit. Programs outside the sandbox may
put files into it; then it stays."""

_STATUS_BYTES = 65_536
_STARTED = b'"exit-code"'
"""Key in bubblewrap's status once the command was started and has ended."""
_SET_UP_FAILED = 1
_PROBE_SECONDS = 10
_TRIES = 100
"""Most attempts to create a placeholder while other programs create and remove it."""


@dataclass(frozen=True, slots=True)
class SandboxedRun:
    """One command, prepared for the sandbox."""

    sandbox: "Sandbox"
    spec: ProcessSpec
    """Command line of bubblewrap with the command."""
    status: int
    """Descriptor for reading bubblewrap's status; never blocks."""

    async def refuse_unless_started(self, outcome: ProcessOutcome, output: bytes) -> None:
        """Raise if the sandbox could not be set up, as opposed to a command that failed in it.

        Args:
            outcome: result of running bubblewrap.
            output: start of its output, for the message.

        Raises:
            ToolError: the command was not run.
        """
        if outcome.ending != "exited" or outcome.returncode != _SET_UP_FAILED or _STARTED in _read(self.status):
            return
        reason = output.decode("utf-8", "replace").strip() or "bwrap gave no reason"
        # Another program may only have removed a path at the wrong moment: then the next command can run.
        _PROBLEMS.clear()
        problem = await run_shielded_in_thread(partial(sandbox_problem, self.spec.cwd, self.sandbox))
        if problem is not None:
            self.sandbox.report_problem(problem)
        raise ToolError(self.sandbox.refusal(reason, HOW_TO_HELP if problem is not None else LEAVE_SANDBOX))


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Restrictions for commands."""

    protected_places: Callable[[Path], Sequence[Path]]
    """Returns the paths below a workspace that stay read-only, existing or not; called before each command."""
    hidden: tuple[Path, ...] = ()
    """Directories of tui-agent, such as settings and sessions, that are empty for commands."""
    shown: tuple[Path, ...] = ()
    """Directories inside hidden ones that commands may still read, such as saved output."""
    network: bool = False
    """True if commands may use the network."""
    is_for_all: bool = True
    """True if every command runs in it; False: only those that the policy confines."""
    report_problem: Callable[[str], object] = str
    """Called on the event loop with the reason if no command can run in it, for a policy that then asks."""

    @asynccontextmanager
    async def around(self, spec: ProcessSpec, *, records_changes: bool = False) -> AsyncGenerator[SandboxedRun]:
        """Prepare the sandbox for a command; it lasts while the context is open.

        Args:
            spec: the command.
            records_changes: True for git commands that may write the workspace's repository, but for its settings and
                hooks.

        Raises:
            ToolError: the sandbox does not work for this command, so it must not run.
        """
        held = ExitStack()
        try:
            try:
                run = await run_shielded_in_thread(partial(self._prepare, spec, held, records_changes=records_changes))
            except ToolError as error:
                reason = str(error).rstrip(".")
                self.report_problem(reason)
                is_missing = reason == _MISSING
                raise ToolError(self.refusal(reason, HOW_TO_HELP if is_missing else LEAVE_SANDBOX)) from error
            yield run
        finally:
            await run_shielded_in_thread(held.close)

    def arguments(
        self,
        root: Path,
        places: Sequence[Path],
        search_path: str,
        opened: Mapping[Path, int] | None = None,
        repository: Path | None = None,
        git_settings: int | None = None,
    ) -> list[str]:
        """Return bubblewrap's options for a command in `root`. Blocks.

        Args:
            root: the workspace; absolute, links followed.
            places: existing paths in it that stay read-only.
            search_path: the command's PATH.
            opened: descriptors of the places; None: bubblewrap opens them by their paths.
            repository: directory in the workspace that is writable around the places; None: all of it is.
            git_settings: descriptor of the user's settings of git; None: commands see none.
        """
        visible = visible_places(root, search_path, os.environ)
        # A workspace inside our own directories is read-only as a whole.
        is_ours = any(root.is_relative_to(path) for path in self.hidden)
        options = ["--unshare-user-try", *system_options(visible, network=self.network, git_settings=git_settings)]
        options += ["--ro-bind" if is_ours else "--bind", str(root), str(root)]
        # As a place of its own, it cannot be moved away from what is read-only in it.
        options += ["--bind", str(repository), str(repository)] if repository is not None else []
        for place in places:
            if not is_channel(place):
                source = ("--ro-bind", str(place)) if opened is None else ("--ro-bind-fd", str(opened[place]))
                options += [*source, str(place)]
            elif not self.network:
                # With a network, a program of the workspace may talk to its database.
                options += covered([str(place)])
        seen = (root, *map(Path, visible.shown))
        options += hidden_options((path for path in self.hidden if path != root), self.shown, seen)
        return [*options, "--chdir", str(root)]

    def refused(self, output: str, root: Path) -> str:
        """Return the restrictions that a failed command met, by the messages in its output; empty if none is there.

        Blocks.
        """
        network = () if self.network else NETWORK_ERRORS
        return refusals(output, (*_FILE_ERRORS, *network), root, self.shown)

    def refusal(self, why: str, advice: str = HOW_TO_HELP) -> str:
        """Return the error of a command that was not run because the sandbox does not work.

        Args:
            why: the reason.
            advice: what to do if the sandbox is for all commands.
        """
        if self.is_for_all:
            return f'The command was not run: sandbox = "bwrap" is set, and it does not work here: {why}. {advice}'
        return f"The command was not run: the sandbox does not work here: {why}. {LEAVE_SANDBOX}"

    def _prepare(self, spec: ProcessSpec, held: ExitStack, *, records_changes: bool) -> SandboxedRun:
        """Create placeholders and the command line; closing `held` removes them again. Blocks.

        Raises:
            ToolError: no command can run in the sandbox, with the reason.
        """
        root = spec.cwd
        bwrap = find_program("bwrap", root)
        if bwrap is None:
            raise ToolError(_MISSING)
        protected = list(self.protected_places(root))
        repository = None
        if records_changes and (git := root / ".git") in protected and not git.is_symlink() and git.is_dir():
            repository = git
            protected.remove(git)
            protected += [git / name for name in _KEPT_IN_REPOSITORY]
            protected += [git / name for name in _KEPT_FILES if os.path.lexists(git / name)]
        wanted = list(dict.fromkeys(map(placeholder_path, protected)))
        if reason := impossible_root(root) or linked_name(wanted):
            raise ToolError(reason)
        impossible = held.enter_context(placeholders(wanted))
        reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        held.callback(os.close, reading)
        held.callback(os.close, writing)
        environment = dict(spec.environment) | {"TMPDIR": "/tmp"}
        places = [place for place in wanted if place not in impossible]
        opened: dict[Path, int] | None = None
        on_spawn = None
        if _takes_descriptors(bwrap, bwrap.stat().st_mtime_ns):
            opened = {}
            on_spawn = partial(_close_all, opened)
            held.callback(on_spawn)
            _open_all(places, opened)
        settings = os.memfd_create("gitconfig", os.MFD_CLOEXEC)
        held.callback(os.close, settings)
        os.write(settings, plain_git_settings(root))
        os.lseek(settings, 0, os.SEEK_SET)
        search_path = environment.get("PATH", os.defpath)
        options = self.arguments(root, places, search_path, opened, repository, settings)
        argv = (str(bwrap), *options, "--json-status-fd", str(writing), "--", *spec.argv)
        descriptors = (writing, settings, *(opened or {}).values())
        ready = replace(spec, argv=argv, environment=environment, descriptors=descriptors, is_wrapped=True)
        return SandboxedRun(self, replace(ready, on_spawn=on_spawn), reading)


def linked_name(places: Iterable[Path]) -> str:
    """Return why the sandbox cannot protect these paths: one is a link; empty if none is."""
    return next((f"{place} is a symbolic link, which it cannot protect" for place in places if place.is_symlink()), "")


def sandbox_problem(root: Path, sandbox: Sandbox | None = None) -> str | None:
    """Return the reason why the sandbox does not work here, found by running an empty command; None: it works. Blocks.

    The answer is remembered for the rest of the process, as long as bubblewrap and the options stay the same.

    Args:
        root: the workspace.
        sandbox: the sandbox to test; None: one without directories of tui-agent.
    """
    bwrap, bash = find_program("bwrap", root), find_program("bash", root)
    if bwrap is None or bash is None:
        return f"{'bwrap' if bwrap is None else 'bash'} is not installed"
    root = Path(os.path.realpath(root))
    if reason := impossible_root(root):
        return reason
    tested = sandbox or Sandbox(lambda _: ())
    options = tested.arguments(root, (), os.environ.get("PATH", os.defpath))
    status = bwrap.stat()
    known = (bwrap, status.st_ino, status.st_mtime_ns, bash, *options)
    if known not in _PROBLEMS:
        _PROBLEMS[known] = _problem([str(bwrap), *options, "--", str(bash), "--noprofile", "--norc", "-c", ":"])
    return _PROBLEMS[known]


_PROBLEMS: dict[tuple[object, ...], str | None] = {}
"""Answers of `sandbox_problem`, by everything that they depend on."""


def _problem(argv: Sequence[str]) -> str | None:
    """Return the reason why a command in the sandbox fails."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    output = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    if done.returncode == 0 and not output:
        return None
    reason = output or f"bwrap ended with code {done.returncode}"
    is_forbidden = "namespace" in reason or "uid map" in reason
    return f"the system forbids user namespaces ({reason})" if is_forbidden else reason


def _read(status: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(status, _STATUS_BYTES)
    return b""


# --- descriptors ------------------------------------------------------------------------------------------------------


@cache
def _takes_descriptors(bwrap: Path, changed: int) -> bool:
    """Return True if this bubblewrap, last changed at a time, binds open files instead of paths.

    It follows links in a path. If a command that runs at the same time exchanged a protected directory for a link to
    hidden files, such as keys, the sandbox would show these.
    """
    with suppress(OSError, subprocess.TimeoutExpired):
        help_text = subprocess.run(
            [str(bwrap), "--help"], stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_SECONDS
        )
        return b"--ro-bind-fd" in help_text.stdout + help_text.stderr
    return False


def _open_all(places: Iterable[Path], opened: dict[Path, int]) -> None:
    """Open each place for a mount, and add it to `opened`.

    Raises:
        OSError: one was replaced since the workspace was scanned.
        ToolError: there are more of them than this program may open files.
    """
    for place in places:
        try:
            opened[place] = descriptor = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.EMFILE:
                raise ToolError("the workspace has more protected paths than a program may open files") from error
            raise
        is_link = stat.S_ISLNK(os.fstat(descriptor).st_mode)
        if is_link or os.readlink(f"/proc/self/fd/{descriptor}") != str(place):
            raise OSError(errno.EAGAIN, "it was replaced while the sandbox was set up", str(place))


def _close_all(opened: dict[Path, int]) -> None:
    """Close descriptors that are still open; safe to call twice."""
    while opened:
        os.close(opened.popitem()[1])


# --- placeholders -----------------------------------------------------------------------------------------------------


@contextmanager
def placeholders(paths: Iterable[Path]) -> Generator[frozenset[Path]]:
    """Create placeholder directories for the paths that do not exist, while the context is open. Blocks.

    bubblewrap can bind only existing paths read-only. Several programs may need the same placeholder at the same time:
    each holds a lock on it, and the last one removes it. The sticky bit identifies a placeholder, so that one left
    behind by a killed program is removed by the next user.

    If the parent of a path is missing, too, the placeholder is its topmost missing parent. Yields the paths that need
    none because the command could not create them either: they are on a read-only file system, or in a directory of
    another user.

    Raises:
        OSError: a placeholder cannot be created.
    """
    with ExitStack() as held:
        impossible: set[Path] = set()
        for path in paths:
            missing = placeholder_path(path)
            try:
                _hold(missing, held)
            except OSError as error:
                if not _is_out_of_reach(error, missing.parent):
                    raise
                impossible.add(path)
        yield frozenset(impossible)


def clear_placeholders(paths: Iterable[Path]) -> None:
    """Remove placeholders that a killed program left behind. Blocks."""
    with suppress(OSError), placeholders(path for path in paths if path.is_dir() and _is_placeholder(path)):
        pass


def placeholder_path(path: Path) -> Path:
    """Return `path` if it or its parent exists, else its topmost missing parent."""
    while not os.path.lexists(path.parent):
        path = path.parent
    return path


def _hold(path: Path, held: ExitStack) -> None:
    """Create a placeholder unless the path exists, and lock it until the context ends."""
    for _ in range(_TRIES):
        with suppress(FileExistsError):
            os.mkdir(path, PLACEHOLDER_MODE)
        if not _is_placeholder(path):
            return
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if _is_still(descriptor, path):
                held.callback(_release, descriptor, path)
                return
            os.close(descriptor)
    raise OSError(errno.EAGAIN, "other programs create and remove it all the time", str(path))


def _release(descriptor: int, path: Path) -> None:
    """Remove the placeholder if no other program holds it and it is empty."""
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(descriptor, path):
                os.rmdir(path)
    finally:
        os.close(descriptor)


def _is_placeholder(path: Path) -> bool:
    with suppress(OSError):
        mode = path.lstat().st_mode
        return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)
    return True  # It is gone again: one more try.


def _is_still(descriptor: int, path: Path) -> bool:
    """Return True if the open directory is still the one at this path."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


def _is_out_of_reach(error: OSError, parent: Path) -> bool:
    """Return True if a command with the user's rights cannot create the directory either."""
    if error.errno == errno.EROFS:
        return True
    return error.errno in (errno.EACCES, errno.EPERM) and parent.stat().st_uid != os.geteuid()
