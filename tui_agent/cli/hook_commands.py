"""The hook commands of the settings, as hooks of an agent."""

import os
from collections.abc import Iterable
from pathlib import Path

from tui_agent.execution import HookBus, ProcessHook
from tui_agent.settings import HookSettings
from tui_agent.tools.processes.child_environment import child_environment


def command_hooks(hooks: Iterable[HookSettings], working_dir: Path) -> HookBus:
    """Return a bus with these hook commands. Their environment contains no secrets."""
    bus = HookBus()
    environment = child_environment(os.environ)
    for hook in hooks:
        command = ProcessHook(hook.command, working_dir, environment, hook.timeout, hook.strict)
        command.add_to(bus, hook.on)
    return bus
