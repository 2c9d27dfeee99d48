"""The hook commands of the settings, as hooks of an agent."""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from tui_agent.execution import HookBus, ProcessHook
from tui_agent.settings import HookSettings
from tui_agent.tools.processes.child_environment import child_environment


def command_hooks(hooks: Iterable[HookSettings], working_dir: Path) -> HookBus:
    """Return a bus with these hook commands. Their environment contains no secrets."""
    bus = HookBus()
    environment = child_environment(os.environ)
    for hook in hooks:
        limit, mark = hook.timeout, marked_tree
        command = ProcessHook(hook.command, working_dir, environment, limit, hook.strict, mark, hook.fail_open)
        command.add_to(bus, hook.on)
    return bus


def marked_tree(environment: Mapping[str, str]) -> tuple[Mapping[str, str], Callable[[int], object]]:
    """Return an environment that marks a process, and a function that ends it with everything it started."""
    from tui_agent.tools.processes.process_tree import TreeMark, end_tree

    mark = TreeMark.new()
    return mark.put_into(environment), partial(end_tree, mark=mark, grace=0.0)
