"""The choices of settings that the screen knows, each with what it does, for every menu, page and hint."""

from collections.abc import Iterable

from tui_agent.protocol.permissions import PermissionMode

MODES = {
    PermissionMode.ASK: "Ask before anything changes that no rule allows",
    PermissionMode.ACCEPT_EDITS: "Keep changes of files in the workspace; ask about the rest",
    PermissionMode.PLAN: "Keep no changes; commands run in trials only",
    PermissionMode.ALLOW: "Run every call that no rule denies, without asking",
    PermissionMode.DENY: "Keep no changes, ask nothing, allow only what a rule allows",
}
"""Each permission mode."""
CYCLED_MODES = (PermissionMode.ASK, PermissionMode.ACCEPT_EDITS, PermissionMode.PLAN)
"""Modes that the mode key cycles through; the others are set by name only."""
EFFORTS = {
    "off": "No thinking",
    "low": "Little thinking: quick answers",
    "medium": "Some thinking",
    "high": "Much thinking, for hard work",
    "xhigh": "More than high, where the model has it",
    "max": "As much thinking as the model can do",
    "default": "As the provider decides",
}
"""Each effort."""
THEMES = {
    "auto": "Dark or light, like the terminal",
    "dark": "Dark ground",
    "light": "Light ground",
    "high-contrast": "Black ground, strong colours",
    "ansi": "The terminal's own sixteen colours",
}
"""Each theme that comes with the program."""


def theme_texts(names: Iterable[str]) -> dict[str, str]:
    """Return the description of each theme by its name; `Your own` for those that we do not ship."""
    return {name: THEMES.get(name, "Your own") for name in names}
