"""The trials of a session: the directory of its layers, and the effect of its path rules on commands in them."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.permissions import PermissionPolicy
from tui_agent.permissions.commands.safe_commands import safe_commands
from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.protocol.server_entries import LookUp
from tui_agent.protocol.tool import Tool
from tui_agent.tools import BackgroundJobs
from tui_agent.trial.sorting import PathSorter
from tui_agent.trial.trials import Trials

from .built_in_tools import built_in_tools
from .launch import Launch
from .opened_session import OpenedSession
from .sessions.side_requests import SideRequests

if TYPE_CHECKING:
    from .code_servers import CodeServers

_MOST_LISTED = 200_000
"""Most files and directories in a workspace whose rules deny reading some of them."""


async def open_code_servers(
    launch: Launch, session: OpenedSession, trials: Trials, stack: AsyncExitStack
) -> "CodeServers | None":
    """Return the language servers of the settings, which start when they are first needed; None without any.

    `stack` ends them when it closes.
    """
    # The offline model needs none, as with tool servers.
    if not launch.settings.lsp or launch.options.demo:
        return None
    # Imported here so that a start without servers does not wait for it.
    from .code_servers import code_servers

    return await stack.enter_async_context(code_servers(launch, session, trials))


class SessionTrials:
    """The layers for commands of a session, and its rules on paths for them, once there is a policy."""

    def __init__(self, launch: Launch, session: OpenedSession) -> None:
        """Prepare the layers and test them. Blocks."""
        self._bus = session.bus
        self._workspace = workspace = Path(os.path.realpath(launch.cwd))
        self.policy: PermissionPolicy | None = None
        """The policy of the session, whose rules apply to commands."""
        self.search: Tool | None = None
        """A tool that searches; its rules on reading apply to commands."""
        self.trials = Trials(
            workspace,
            launch.locations.state_dir / "trials",
            session.stored.id,
            PathSorter(workspace, is_protected=self.is_protected, is_denied=self.is_denied),
            setting=launch.settings.sandbox,
            network=launch.settings.sandbox_network,
            hidden=launch.locations.own_directories,
            shown=(Path(os.path.realpath(session.archive)),),
            unreadable=self.unreadable,
            folders=self.folders,
            stored=session.stored.path or session.archive,
        )
        """Makes the layers."""
        self.trials.facts  # noqa: B018 — tested now, while the session is opened

    @classmethod
    async def open(cls, launch: Launch, session: OpenedSession, stack: AsyncExitStack) -> "SessionTrials":
        """Prepare the layers of a session; `stack` closes them."""
        async with asyncio.TaskGroup() as group:
            # Read here, beside the test of the trial: the first decision would block the event loop for it.
            group.create_task(asyncio.to_thread(safe_commands))
            found = await asyncio.to_thread(cls, launch, session)
        stack.push_async_callback(run_shielded_in_thread, found.trials.close)
        return found

    def give_up(self, problem: str) -> None:
        """Let the policy ask from now on, because trials work no more, and say so once."""
        # Commands that run side by side all meet the same fault.
        if self.policy is None or not (facts := self.policy.trial).is_available:
            return
        self.policy.set_trial(facts.model_copy(update={"backend": "", "problem": problem}))
        outcome = "no command runs" if facts.setting == "required" else "commands ask from now on before they run"
        text = f"The trial does not work here any more, so {outcome}: {problem}."
        self._bus.publish(Warned(code="sandbox_unavailable", text=text))

    def tools(
        self,
        launch: Launch,
        session: OpenedSession,
        policy: PermissionPolicy,
        jobs: BackgroundJobs,
        side: SideRequests,
        look_up: LookUp | None,
    ) -> list[Tool]:
        """Return the built-in tools of the session, whose commands run in its layers, as its policy says."""
        self.policy, publish = policy, self._bus.publish
        tools = built_in_tools(
            launch.cwd,
            session.archive,
            self.trials,
            session.contents,
            (launch.locations.config_dir, launch.locations.state_dir),
            output_limit=launch.settings.output_disk_limit,
            warn=lambda text: publish(Warned(code="output_disk_limit", text=text)),
            protected=ProtectedTree(self._workspace, launch.locations.own_directories),
            warn_of_protected=lambda text: publish(Warned(code="protected_changed", text=text)),
            note_withheld=lambda text: publish(Noticed(code="variables_withheld", text=text)),
            jobs=jobs,
            side_requests=None if launch.options.demo else side,
            report_problem=self.give_up,
            look_up=look_up,
            is_trusted=policy.is_trusted,
        )
        self.search = next((tool for tool in tools if tool.name == "grep"), None)
        return tools

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
        # Most sessions: nothing is listed for them.
        if not denying:
            return []
        found: list[Path] = []
        for top in (self._workspace, *policy.folders):
            is_denied = policy.denied_below(self.search, {"pattern": "x", "path": str(top)})
            found += [top / path for path in self._denied(top, is_denied)]
        for rule in denying:
            place = Path(os.path.expanduser((rule.pattern or "").strip().removesuffix("/**").replace("//", "/", 1)))
            # Outside of the workspace nothing is listed, so that only a rule without signs names a path.
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
                    # A link may lead out of the tree, or back into it without end.
                    elif entry.is_dir(follow_symlinks=False):
                        pending.append(f"{path}/")
