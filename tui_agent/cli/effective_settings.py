"""The settings that hold for a start: files, trust and options together."""

import os

from tui_agent.settings import LoadedSettings, Locations, load_settings

from .launch_options import LaunchOptions
from .project_trust import trust_for


def prepare_settings(options: LaunchOptions) -> tuple[Locations, LoadedSettings]:
    """Reads the settings for these options.

    Raises:
        ConfigurationError: something in them is wrong.
    """
    locations = Locations.of_user(os.environ)
    return locations, load_effective_settings(options, locations)


def load_effective_settings(options: LaunchOptions, locations: Locations) -> LoadedSettings:
    """The settings as the files hold them now, with these options on top.

    Raises:
        ConfigurationError: something in them is wrong.
    """
    return load_settings(
        locations,
        project=options.cwd,
        trust=trust_for(options.cwd, locations, given=options.trust),
        options=options.settings,
        option_rules=options.rules,
    )
