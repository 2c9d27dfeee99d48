"""The trials of a session: where its layers are stored, and what its rules on paths mean for commands in them."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import Tool
from tui_agent.session import StoredSession
from tui_agent.settings import Locations, Settings
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trials import Trials

from .built_in_tools import own_directories

_MOST_LISTED = 200_000
"""Most files and directories in a workspace whose rules deny reading some of them."""


class TrialRules:
    """Rules on paths for commands in trials, once there is a policy."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self.policy: PermissionPolicy | None = None
        self.search: Tool | None = None
        """A tool that searches; its rules on reading apply to commands."""

    def is_denied(self, path: str) -> bool:
        """Return True if a rule forbids to edit a path, which is as in `ProposedFile.path`."""
        return self.policy is not None and bool(self.policy.why_never_kept(path))

    def is_protected(self, path: str) -> bool:
        """Return True if only the user may keep a change of a path."""
        return self.policy is not None and self.policy.is_protected_change(path)

    def folders(self) -> tuple[Path, ...]:
        """Return the folders that count as part of the workspace."""
        return self.policy.folders if self.policy is not None else ()

    def unreadable(self) -> list[Path]:
        """Return the paths that no command may read, of the workspace, of added folders, and named by rules. Blocks.

        Raises:
            ToolError: the workspace is too large to look through.
        """
        policy = self.policy
        if policy is None or self.search is None:
            return []
        denying = [rule for rule in policy.rules if rule.verdict == "deny" and rule.applies_to(self.search.name)]
        if not denying:
            return []
        found: list[Path] = []
        for top in (self._workspace, *policy.folders):
            is_denied = policy.denied_below(self.search, {"pattern": "x", "path": str(top)})
            found += [top / path for path in self._denied(top, is_denied)]
        for rule in denying:
            place = Path(os.path.expanduser((rule.pattern or "").strip().removesuffix("/**").replace("//", "/", 1)))
            if place.is_absolute() and not any(sign in str(place) for sign in "*?["):
                found.append(place)
        return found

    @staticmethod
    def _denied(top: Path, is_denied: Callable[[str], bool]) -> Iterator[str]:
        """Yield the topmost paths below a directory that no command may read."""
        pending, seen = [""], 0
        while pending:
            directory = pending.pop()
            with suppress(OSError), os.scandir(top / directory) as entries:
                for entry in entries:
                    seen += 1
                    if seen > _MOST_LISTED:
                        raise ToolError("a rule denies reading, and the workspace is too large to find all it denies")
                    path = f"{directory}{entry.name}"
                    if is_denied(path):
                        yield path
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append(f"{path}/")


def session_trials(
    root: Path, settings: Settings, locations: Locations, session: StoredSession, archive: Path, rules: TrialRules
) -> Trials:
    """Return what makes the layers of a session, tested. Blocks."""
    workspace = Path(os.path.realpath(root))
    trials = Trials(
        workspace,
        locations.state_dir / "trials",
        session.id,
        PathSorter(workspace, is_protected=rules.is_protected, is_denied=rules.is_denied),
        setting=settings.sandbox,
        network=settings.sandbox_network,
        hidden=own_directories(locations),
        shown=(Path(os.path.realpath(archive)),),
        unreadable=rules.unreadable,
        folders=rules.folders,
        stored=session.path or archive,
    )
    trials.facts  # noqa: B018 — tested now, while the session is opened
    return trials
