"""The trials of one session: chooses the kind that works here, and makes a layer for each command."""

import json
import os
import secrets
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.programs import find_program
from tui_agent.protocol.trial import TrialBackend, TrialFacts, TrialSetting
from tui_agent.walls.bubblewrap import PROBE_SECONDS, found_bubblewraps, remedies
from tui_agent.walls.wall_options import impossible_root

from .command_walls import BubblewrapWalls, LandlockWalls, landlock_problem
from .confinement import Confinement, LayerRoot, covered_places, layer_roots, mounts_inside
from .layer_limits import LayerLimits
from .layer_storage import RECORD, SessionStorage, clear_dead_sessions, remove_tree, storage_candidates
from .sorting import PathSorter
from .trial_layer import TrialLayer, Walls

_LONGEST = 200
"""Most characters of a reason."""
_FORBIDDEN = ("namespace", "uid map", "uid_map", "not permitted", "ermission denied")
"""Words in the messages of programs that the system forbids namespaces."""
_PAUSE_OF_VIEW = 5.0
_PROBE = 'test -e "$1" && rm -- "$2/old" && mkdir "$2/new" && echo new > "$2/new/file"'


class Trials:
    """Makes layers for the commands of one session."""

    def __init__(
        self,
        workspace: Path,
        storage: Path,
        session: str,
        sorter: PathSorter | None = None,
        *,
        setting: TrialSetting = "auto",
        network: bool = False,
        hidden: Iterable[Path] = (),
        shown: Iterable[Path] = (),
        folders: Callable[[], Iterable[Path]] = tuple,
        unreadable: Callable[[], Iterable[Path]] = tuple,
        limits: LayerLimits | None = None,
        stored: Path | None = None,
    ) -> None:
        """Make trials for a session; nothing is created before they are used.

        Args:
            workspace: the working directory of commands.
            storage: directory for layers, used if it can hold them.
            session: id of the session.
            sorter: sorts the changes of a layer; None: no path is protected.
            setting: the user's setting.
            network: True if commands may use the network.
            hidden: directories of tui-agent, which are empty for commands.
            shown: directories inside hidden ones that commands may read.
            folders: returns added folders, which layers cover, too.
            unreadable: returns paths that a rule denies to read; they are empty for commands.
            limits: most of what a command may store; None: the default.
            stored: the stored session, without which no layer of it waits any more; None: they always do.
        """
        self._workspace = Path(os.path.realpath(workspace))
        self._storage = storage
        self._session = session
        self._setting: TrialSetting = setting
        self._network = network
        self._folders = folders
        self._box = partial(
            Confinement,
            workspace=self._workspace,
            network=network,
            hidden=(*hidden,),
            shown=(*shown,),
            unreadable=unreadable,
            limits=limits or LayerLimits(),
            sorter=sorter or PathSorter(self._workspace),
            stored=stored,
            on_failure=self._test_again,
        )
        self._facts: TrialFacts | None = None
        self._walls: Walls | None = None
        self._held: SessionStorage | None = None
        # The screen and the first command may ask at the same time, in threads of their own.
        self._testing = Lock()

    @property
    def facts(self) -> TrialFacts:
        """Facts about what works here, tested at the first use. Blocks then."""
        with self._testing:
            if (facts := self._facts) is None:
                self._walls, problem = (None, "") if self._setting == "off" else self._try_all()
                has_layer = self._walls is not None and self._walls.has_layer
                backend: TrialBackend = "" if self._walls is None else "overlay" if has_layer else "read_only"
                facts = TrialFacts(setting=self._setting, backend=backend, network=self._network, problem=problem)
                self._facts = facts
            return facts

    @property
    def temporary(self) -> Path | None:
        """Directory that commands see as /tmp, for tools that read it; None before the first test or without walls."""
        return None if self._held is None else self._held.temporary

    def open(self, call_id: str) -> TrialLayer:
        """Return a new layer over the workspace as it is now. Blocks.

        Raises:
            ToolError: none can be made, with the reason.
        """
        facts = self.facts
        if self._walls is None or self._held is None:
            raise ToolError(f"no trial works here: {facts.problem}")
        directory = self._held.layers / secrets.token_hex(8)
        try:
            directory.mkdir(mode=0o700)
            return self._layer(directory, call_id, self._walls, self._box(held=self._held))
        except OSError as error:
            raise ToolError(f"no layer can be made: {error}") from error

    def open_view(self) -> TrialLayer:
        """Return walls around a program that sees the workspace as it changes, and changes nothing of it. Blocks.

        Raises:
            ToolError: none can be built, with the reason.
        """
        facts, walls = self.facts, self._walls
        if walls is None or self._held is None:
            raise ToolError(f"no trial works here: {facts.problem}")
        if isinstance(walls, BubblewrapWalls):
            walls = replace(walls, has_layer=False, unshare=())
        directory = self._held.layers / secrets.token_hex(8)
        try:
            directory.mkdir(mode=0o700)
            box = self._box(held=self._held)
            # It may run for the whole session.
            box = replace(box, limits=replace(box.limits, pause=_PAUSE_OF_VIEW))
            return self._layer(directory, "", walls, box)
        except OSError as error:
            raise ToolError(f"no walls can be built: {error}") from error

    def waiting(self, call_id: str) -> tuple[TrialLayer, str] | None:
        """Return the layer of a call that waited for an answer when the program ended, and the call's result. Blocks.

        None if no layer waits for this call, or trials do not work here.
        """
        if not self.facts.is_available or self._held is None or self._walls is None:
            return None
        for directory in self._held.waiting():
            with suppress(OSError, ValueError, KeyError, TypeError):
                values: dict[str, Any] = json.loads((directory / RECORD).read_text("utf-8"))
                if values["call"] == call_id:
                    roots = layer_roots(directory, [Path(place) for place in values["roots"]])
                    made_ns, box = int(values["made_ns"]), self._box(held=self._held)
                    return TrialLayer(directory, call_id, roots, made_ns, box, self._walls), str(values["result"])
        return None

    def close(self) -> None:
        """Remove all layers that wait for no answer; a later use tests again. Blocks."""
        if self._held is not None:
            self._held.close()
            self._held = self._facts = None

    def _layer(self, directory: Path, call_id: str, walls: Walls, box: Confinement, *more: Path) -> TrialLayer:
        """Return a new layer over the workspace and more directories."""
        roots = layer_roots(directory, (*covered_places(self._workspace, self._folders()), *more))
        walls.prepare(roots)
        # The clock of files is coarser than that of the system.
        return TrialLayer(directory, call_id, roots, directory.stat().st_ctime_ns, box, walls)

    def _test_again(self) -> None:
        self._facts = None

    # --- probing ------------------------------------------------------------------------------------------------------

    def _try_all(self) -> tuple[Walls | None, str]:
        """Return the first way that works, and why a better one does not."""
        if reason := impossible_root(self._workspace):
            return None, reason
        problems: list[str] = []
        # Once a storage is held, other commands may have their layers in it.
        held = self._held
        storages = [held.base] if held is not None else storage_candidates(self._storage, self._workspace)
        for walls in self._ways():
            for storage in storages:
                try:
                    self._try(walls, storage)
                except (OSError, ToolError, subprocess.TimeoutExpired) as error:
                    problems.append(f"{self._mounted() if walls.has_layer else ''}{_shortened(str(error))}")
                else:
                    return walls, "" if walls.has_layer else self._reason(problems)
        if held is None:
            self.close()
        if reason := landlock_problem():
            problems.append(reason)
        return None, self._reason(problems)

    def _reason(self, problems: Iterable[str]) -> str:
        """Return why a better way does not work, and what would mend it."""
        found = dict.fromkeys(problems)
        has_bubblewrap = bool(found_bubblewraps(self._workspace))
        words = "; ".join([*([] if has_bubblewrap else ["bubblewrap is not installed"]), *found])
        remedy = remedies(has_bubblewrap=has_bubblewrap, is_forbidden=any(word in words for word in _FORBIDDEN))
        return f"{words}. To mend it: {remedy}" if remedy else words

    def _mounted(self) -> str:
        """Return a remark on a mount in the workspace: over one, only root can mount a layer."""
        mounts = mounts_inside(self._workspace)
        return f"{mounts[0]} is mounted inside the workspace: " if mounts else ""

    def _ways(self) -> Iterator[Walls]:
        # The best way first: bubblewrap mounts the layer itself; `unshare` does before it starts; there is no layer.
        programs = found_bubblewraps(self._workspace)
        yield from (BubblewrapWalls(program, True) for program in programs if program.mounts_layers)
        unshare = find_program("unshare", self._workspace)
        for program in programs if unshare else ():
            yield BubblewrapWalls(program, True, (str(unshare), "--user", "--map-root-user", "--mount"))
            # Root may mount also where the kernel refuses user namespaces.
            if os.geteuid() == 0:
                yield BubblewrapWalls(program, True, (str(unshare), "--mount"))
        yield from (BubblewrapWalls(program, False) for program in programs)
        if not landlock_problem():
            yield LandlockWalls()

    def _try(self, walls: Walls, storage: Path) -> None:
        """Run a command in a layer, and hold the storage.

        Raises:
            OSError, ToolError, subprocess.TimeoutExpired: it does not work, with the reason.
        """
        if self._held is None or self._held.base != storage:
            self.close()
            clear_dead_sessions(storage)
            self._held = SessionStorage(storage, self._session, self._workspace)
        directory = self._held.layers / secrets.token_hex(8)
        lower = directory / "lower"
        try:
            lower.mkdir(parents=True, mode=0o700)
            (lower / "old").touch()
            layer = self._layer(directory, "", walls, self._box(held=self._held), lower)
            script = _PROBE if walls.has_layer else 'test -e "$1"'
            _run(layer, ("sh", "-c", script, "sh", str(self._workspace), str(lower)))
            if walls.has_layer:
                _check(layer.roots[-1])
        finally:
            remove_tree(directory)


def _run(layer: TrialLayer, argv: tuple[str, ...]) -> None:
    command = layer.walled(argv, {"PATH": os.environ.get("PATH", os.defpath)})
    try:
        done = subprocess.run(
            command.argv,
            env=command.environment,
            pass_fds=command.descriptors,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PROBE_SECONDS,
        )
    finally:
        layer.end()
    if done.returncode != 0:
        reason = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
        raise ToolError(reason or f"{command.argv[0]} ended with code {done.returncode}")


def _shortened(problem: str) -> str:
    """Return a reason in one line; the middle of a long one, such as options of a mount, is left out."""
    line, half = " ".join(problem.split()), _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"


def _check(root: LayerRoot) -> None:
    """Raise if a layer does not store changes as it must."""
    if os.listdir(root.place) != ["old"]:
        raise ToolError("a layer does not keep changes apart from the workspace")
    if not os.path.lexists(root.upper / "old") or not (root.upper / "new" / "file").exists():
        raise ToolError("a layer does not store changes")
