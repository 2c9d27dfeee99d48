"""Random commands on random trees: keeping everything equals running without a layer, discarding equals not running."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_agent.protocol.trial import KeepSelection, LayerChanges

from .layers import RealLayer, everything, outside, tree_of

COUNT = int(os.environ.get("TRIAL_RANDOM_COMMANDS", str(examples(60))))
"""Number of random commands."""

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
"""Shrinking would run for minutes."""

NAMES = ("a", "b", "d", "d/e", "d/e/f", "d/x y", "g/h", "g", "-n", "$'o\\nd'", "$'\\xff'", "build/o", "l")
"""Paths, so few that commands meet what others made."""

PATHS = st.sampled_from([name if name[0] != "-" else f"./{name}" for name in NAMES]).map(
    lambda name: name if name.startswith("$") else f"'{name}'"
)
NUMBERS = st.integers(0, 9)
MODES = st.sampled_from(["600", "644", "755", "700", "444", "555", "000", "4755", "750"])
STEPS = st.one_of(
    st.builds("echo {} > {}".format, NUMBERS, PATHS),
    st.builds("echo {} >> {}".format, NUMBERS, PATHS),
    st.builds("mkdir -p {}".format, PATHS),
    st.builds("rm -rf {}".format, PATHS),
    st.builds("rmdir {}".format, PATHS),
    st.builds("mv -T {} {}".format, PATHS, PATHS),
    # By way of another directory: what of a directory is copied into itself depends on the order of its entries.
    st.builds("t=$(mktemp -d); cp -a {} $t/c; cp -a $t/c {}; rm -rf $t".format, PATHS, PATHS),
    st.builds("ln -sf {} {}".format, PATHS, PATHS),
    st.builds("chmod {} {}".format, MODES, PATHS),
    st.builds("touch {}".format, PATHS),
    st.builds("sed -i s/1/2/ {}".format, PATHS),
    st.builds("truncate -s {}K {}".format, NUMBERS, PATHS),
    st.builds("test -e {} && rm -rf {}; mkdir {}; touch {}/new".format, PATHS, PATHS, PATHS, PATHS),
)
SCRIPTS = st.lists(STEPS, min_size=1, max_size=7).map("; ".join)


def without(tree: dict[str, tuple[object, ...]], changes: LayerChanges) -> dict[str, tuple[object, ...]]:
    """Return a tree without what is never kept, and without directories that might be there for it only."""
    refused = [change.path for change in changes.changes if change.sort == "refused"]
    left_out = {path for path in tree if any(path == one or one.startswith(f"{path}/") for one in refused)}
    return {path: what for path, what in tree.items() if path not in left_out}


@settings(max_examples=COUNT, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(start=SCRIPTS, command=SCRIPTS, second_way=st.booleans())
def test_keeping_equals_running_outside(start: str, command: str, *, second_way: bool) -> None:
    """Byte for byte, with modes and links; nothing changes before the answer, and discarding changes nothing."""
    with TemporaryDirectory() as name:
        workspace, other = Path(name, "workspace"), Path(name, "other")
        workspace.mkdir()
        outside(workspace, f"umask 022; {start}")
        shutil.rmtree(other, ignore_errors=True)
        outside(workspace, "cp -a . ../other")
        before = tree_of(workspace)
        layer = RealLayer.over(Path(name, "layer"), workspace)
        layer.run(command, second_way=second_way)
        changes = layer.changes()
        assert tree_of(workspace) == before
        report = layer.keep(everything(changes), changes)
        outside(other, command)
        refused = {change.path for change in changes.changes if change.sort == "refused"}
        if not refused:
            assert report.problems == {}
        assert without(tree_of(workspace), changes) == without(tree_of(other), changes)
        outside(Path(name), "chmod -R u+rwx .")


@settings(max_examples=COUNT // 4 + 1, deadline=None, phases=PHASES, suppress_health_check=list(HealthCheck))
@given(start=SCRIPTS, command=SCRIPTS, chosen=st.sets(st.integers(0, 12)))
def test_a_selection_keeps_exactly_what_it_names(start: str, command: str, chosen: set[int]) -> None:
    """Each named file is as in the layer, or has a problem; each other one is as before."""
    with TemporaryDirectory() as name:
        workspace, other = Path(name, "workspace"), Path(name, "other")
        workspace.mkdir()
        outside(workspace, f"umask 022; {start}")
        outside(workspace, "cp -a . ../other")
        before = tree_of(workspace)
        layer = RealLayer.over(Path(name, "layer"), workspace)
        layer.run(command)
        changes = layer.changes()
        outside(other, command)
        named = {change.path for number, change in enumerate(changes.changes) if number in chosen}
        report = layer.keep(KeepSelection(paths=tuple(named)), changes)
        now, expected = tree_of(workspace), tree_of(other)
        for change in changes.changes:
            if change.new == "directory" or change.old == "directory":
                continue
            wanted = expected if change.path in named and change.path not in report.problems else before
            assert now.get(change.path) == wanted.get(change.path), (change, report.problems)
        outside(Path(name), "chmod -R u+rwx .")
