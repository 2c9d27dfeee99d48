"""Modes and settings of a session as options of the protocol."""

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.permissions import PermissionMode

from .editor_host import EditorBench

MODE = "mode"
_CATEGORIES = {"model": "model", "effort": "thought_level"}
_HELP = {
    PermissionMode.ASK: ("Ask", "Asks before anything changes"),
    PermissionMode.ACCEPT_EDITS: ("Accept edits", "Keeps changes of files in the workspace; asks about the rest"),
    PermissionMode.PLAN: ("Plan", "Keeps no changes"),
    PermissionMode.DENY: ("Deny", "Keeps no changes and asks nothing"),
    PermissionMode.ALLOW: ("Allow", "Everything runs that no rule denies"),
}


def mode_state(opened: EditorBench) -> SessionModeState:
    """Return the modes to choose from, and the current one."""
    modes = [SessionMode(id=mode.value, name=_HELP[mode][0], description=_HELP[mode][1]) for mode in opened.modes]
    return SessionModeState(current_mode_id=opened.bench.agent.policy.mode.value, available_modes=modes)


def config_options(opened: EditorBench) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return all options with their values."""
    state = mode_state(opened)
    modes = [
        SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
        for one in state.available_modes
    ]
    options: list[SessionConfigOptionSelect | SessionConfigOptionBoolean] = [
        SessionConfigOptionSelect(
            type="select", id=MODE, name="Mode", category="mode", current_value=state.current_mode_id, options=modes
        )
    ]
    for choice in opened.choices:
        values = [SessionConfigSelectOption(value=value, name=value) for value in choice.values]
        options.append(
            SessionConfigOptionSelect.model_validate(
                {
                    "type": "select",
                    "id": choice.name,
                    "name": choice.label,
                    "category": _CATEGORIES[choice.name],
                    "current_value": choice.value,
                    "options": values,
                }
            )
        )
    return options


def set_mode(opened: EditorBench, name: str) -> None:
    """Change the permission mode.

    Raises:
        ConfigurationError: the session has no such mode.
    """
    modes = {mode.value: mode for mode in opened.modes}
    if name not in modes:
        raise ConfigurationError(f"no mode {name!r} here; there are {', '.join(modes)}")
    if modes[name] is not opened.bench.agent.policy.mode:
        opened.bench.agent.set_mode(modes[name], "user")


def set_option(opened: EditorBench, name: str, value: object) -> None:
    """Change an option.

    Raises:
        ConfigurationError: it has no such value.
    """
    if not isinstance(value, str):
        raise ConfigurationError(f"the option {name!r} takes text")
    if name == MODE:
        set_mode(opened, value)
    else:
        opened.choose(name, value)
