"""Applies settings as soon as their files change; rules apply also to calls that wait for an approval."""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from tui_agent.agent import AgentLoop
from tui_agent.permissions import PermissionPolicy
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed, Warned
from tui_agent.protocol.file_watch import WatchedFiles, watch_files
from tui_agent.protocol.regular_file import read_regular_file_async
from tui_agent.settings import PROJECT_FILE, LoadedSettings, Locations, RuleSetting, Settings, only_at_start, value_of

from .agent_setup import apply_settings
from .configuration.effective_settings import load_effective_settings
from .configuration.launch_options import LaunchOptions
from .configuration.permission_rules import check_folder, parse_rules
from .session_folders import SETTING, SessionFolders
from .session_models import SessionModels

UseOnScreen: TypeAlias = Callable[[Settings, LoadedSettings], Sequence[str]]
"""Applies the settings of the screen after a change; returns warnings about those that cannot be applied."""


class LiveSettings:
    """Current settings of an open session, and the means to replace them."""

    def __init__(
        self,
        options: LaunchOptions,
        loaded: LoadedSettings,
        loop: AgentLoop,
        policy: PermissionPolicy,
        folders: SessionFolders,
        models: SessionModels,
        use_on_screen: UseOnScreen | None = None,
    ) -> None:
        self._options = options
        self._loaded = loaded
        self._loop = loop
        self._policy = policy
        self._folders = folders
        self._models = models
        self._use_on_screen = use_on_screen
        self._locations = Locations.of_user()
        self._files = (self._locations.user_file, options.cwd / PROJECT_FILE)
        # Not read here: a file may have changed since the settings were loaded.
        self._contents: tuple[bytes | None, ...] | None = None

    async def watch(self) -> None:
        """Apply the settings after each change of their files, until cancelled."""
        await watch_files(WatchedFiles(self._files), self.read_again, self._warn_of_polling)

    def give_up(self, reason: str) -> None:
        """Warn that changes of the files are no longer noticed."""
        text = f"Settings are no longer watched ({reason}). They stay as they are; restart to apply changes."
        self._loop.bus.publish(Warned(code="settings_unwatched", text=text))

    def _warn_of_polling(self, reason: str) -> None:
        text = f"The system no longer reports changes of settings ({reason}). The files are checked once a second."
        self._loop.bus.publish(Noticed(code="settings_checked", text=text))

    async def read_again(self) -> None:
        """Apply the settings if the files have changed; if they are wrong, publish a warning and change nothing."""
        try:
            contents = tuple([await _content(file) for file in self._files])
        except OSError:
            return  # No descriptor is free. The next check reads the files again.
        if contents == self._contents:
            return
        self._contents = contents
        try:
            loaded = await asyncio.to_thread(load_effective_settings, self._options, self._locations)
            rules = self._kept_rules(loaded)
            layers = parse_rules(rules)
        except ConfigurationError as error:
            self._loop.bus.publish(Warned(code="settings_broken", text=f"{error}. The settings stay unchanged."))
            return
        before, self._loaded = self._loaded, LoadedSettings(loaded.settings, loaded.origins, rules, loaded.files)
        self._use(before.settings, loaded)
        await self._add_folders(before.settings, loaded.settings)
        self._policy.set_rules(layers)
        mode = loaded.settings.permissions.mode
        if mode is not before.settings.permissions.mode:
            self._loop.set_mode(mode, by="settings")
        self._loop.gate.reconsider()
        if rules != before.rules:
            text = f"The settings were reloaded: {len(rules)} permission rules are in force."
            self._loop.bus.publish(Noticed(code="settings_read", text=text))

    def _use(self, before: Settings, loaded: LoadedSettings) -> None:
        """Apply everything but rules and mode, and publish which changes wait for the next start."""
        after = loaded.settings
        try:
            apply_settings(self._loop, self._options, before, after)
            self._models.use_settings(before, after)
        except ConfigurationError as error:
            self._loop.bus.publish(Warned(code="settings_broken", text=f"{error}. The model stays unchanged."))
        problems = self._use_on_screen(before, loaded) if self._use_on_screen is not None else ()
        late = [key for key in only_at_start() if value_of(before, key) != value_of(after, key)]
        if set(before.permissions.folders) - set(after.permissions.folders):
            late.append(SETTING)
        if late:
            text = f"Changed in the settings: {', '.join(late)}. This takes effect at the next start."
            self._loop.bus.publish(Noticed(code="settings_later", text=text))
        for text in problems:
            self._loop.bus.publish(Warned(code="left_out", text=text))

    async def _add_folders(self, before: Settings, after: Settings) -> None:
        """Add the new folders to the workspace; one that is no longer listed stays until the next start."""
        for name in after.permissions.folders:
            if name in before.permissions.folders:
                continue
            try:
                path = Path(os.path.expanduser(name))
                folder = await asyncio.to_thread(check_folder, path, self._options.cwd)
            except ConfigurationError as error:
                self._loop.bus.publish(Warned(code="left_out", text=f"`permissions.folders`: {error}."))
                continue
            if folder not in self._folders.in_force:
                self._folders.join(folder)

    def _kept_rules(self, loaded: LoadedSettings) -> tuple[RuleSetting, ...]:
        """Return the new rules, and those of the current ones that stay: the rules of the offline model's tour, and the
        deny and ask rules of a project whose settings are no longer trusted, or gone."""
        current = self._loaded.rules
        tour = tuple(rule for rule in current if rule.origin == "--demo")
        lost_project = any(rule.layer == "project" for rule in current) and not any(
            file.name == PROJECT_FILE.name and file != self._locations.user_file for file in loaded.files
        )
        # A change of the project's settings must never loosen the rules of a running agent.
        stay = tuple(rule for rule in current if rule.layer == "project" and lost_project and rule.verdict != "allow")
        if lost_project and loaded.ignored:
            text = f"{loaded.ignored[0]}. Restart tui-agent to decide about them."
            self._loop.bus.publish(Warned(code="settings_untrusted", text=text))
        return (*loaded.rules, *stay, *tour)


async def _content(file: Path) -> bytes | None:
    try:
        return await read_regular_file_async(str(file))
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return None
