"""Everything about the start of a session that the user should know."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tui_agent.protocol.events import Noticed, Warned
from tui_agent.settings import LoadedSettings

from .configuration.launch_options import LaunchOptions
from .configuration.project_trust import FolderTrust, folder_trust, without_files
from .launch import Launch
from .opened_session import OpenedSession
from .plugins.plugin_loader import plugin_news

ScreenProblems: TypeAlias = Callable[[LaunchOptions, LoadedSettings], Sequence[str]]
"""Returns warnings about settings of the screen that cannot be applied. Blocks."""

SAFE_START = (
    "Safe start: settings, hooks, tool servers, skills, commands, sub-agents, instructions and plugins are not used, "
    "neither yours nor those of this folder. Rules that deny or ask still count."
)


async def publish_notices(
    launch: Launch,
    session: OpenedSession,
    screen_problems: ScreenProblems | None,
) -> FolderTrust:
    """Publish what this start leaves out, and what is new; return which files of the folder apply."""
    options, loaded, plugins, publish = launch.options, launch.loaded, launch.plugins, session.bus.publish
    model = launch.provider.model
    if loaded.settings.budget.cost_usd is not None and model.output_price is None:
        text = f"The price of {model.name} is unknown, so the cost limit has no effect."
        publish(Warned(code="left_out", text=text))
    if session.stored.resumed and not options.keep_session:
        publish(Noticed(code="not_kept", text="This session will not be saved from here on."))
    if options.notice:
        publish(Warned(code="open_elsewhere", text=options.notice))
    folder = await asyncio.to_thread(folder_trust, options.cwd, launch.locations, given=options.trust)
    wrong = () if screen_problems is None else await asyncio.to_thread(screen_problems, options, loaded)
    if options.extras.is_safe:
        folder = without_files(folder)
        publish(Noticed(code="safe_start", text=SAFE_START))
    left_out = (*loaded.unknown_variables, *loaded.ignored, *folder.left_out, *wrong, *plugins.problems)
    for text in left_out:
        publish(Warned(code="left_out", text=text))
    if news := await asyncio.to_thread(plugin_news, plugins.plugins, launch.locations):
        publish(Noticed(code="plugins_changed", text=news))
    return folder
