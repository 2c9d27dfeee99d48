"""Built-in facts about models: context windows, output limits, prices, and the form of their reasoning setting.

Prices are in dollars per million tokens, and only given if the published price is a single number.
"""

import re
from dataclasses import dataclass

from tui_agent.protocol.provider import ModelInfo, ThinkingForm

DEMO_MODEL = "offline-demo"
"""Name of the scripted model behind `--demo`."""

_OWN_CEILING = 64_000
"""Default for the longest answer in tokens; a limit of 128,000 suits batch work more than a conversation."""

_UNKNOWN_WINDOW = 64_000
"""Context window assumed for models of other vendors, the least that local servers are advised to configure."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One model, or a family of models."""

    window: int
    output: int
    prices: tuple[float, float] | None
    thinking: ThinkingForm


_LARGE = 1_000_000
_TABLE: dict[str, _Row] = {
    "claude-fable-5-2": _Row(_LARGE, 128_000, (8.0, 40.0), "always"),
    "claude-fable-5-1": _Row(_LARGE, 128_000, (10.0, 50.0), "always"),
    "claude-fable-5": _Row(_LARGE, 128_000, (10.0, 50.0), "always"),
    "claude-mythos-5": _Row(_LARGE, 128_000, (10.0, 50.0), "always"),
    "claude-opus-5-5": _Row(_LARGE, 128_000, (4.0, 20.0), "always"),
    "claude-opus-5": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-8": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-7": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-6": _Row(_LARGE, 128_000, (5.0, 25.0), "adaptive"),
    "claude-opus-4-5": _Row(200_000, 64_000, (5.0, 25.0), "budget"),
    "claude-sonnet-5-5": _Row(_LARGE, 128_000, (2.0, 10.0), "adaptive"),
    "claude-sonnet-5": _Row(_LARGE, 128_000, (2.0, 10.0), "adaptive"),
    "claude-sonnet-4-6": _Row(_LARGE, 128_000, (3.0, 15.0), "adaptive"),
    "claude-sonnet-4-5": _Row(200_000, 64_000, (3.0, 15.0), "budget"),
    "claude-haiku-5-5": _Row(_LARGE, 128_000, None, "adaptive"),
    "claude-haiku-4-5": _Row(200_000, 64_000, (1.0, 5.0), "budget"),
}
_WITHOUT_XHIGH = frozenset({"claude-opus-4-6", "claude-sonnet-4-6"})
_FAMILY = _Row(200_000, 32_000, None, "adaptive")
"""A model of the same vendor that is newer than this table."""
_OTHER_FAMILIES = {
    "gpt-5-chat": _Row(128_000, 16_384, None, "none"),
    "gpt-5": _Row(400_000, 128_000, None, "adaptive"),
    "gpt-4.1": _Row(1_047_576, 32_768, None, "none"),
    "gpt-4o": _Row(128_000, 16_384, None, "none"),
    "o3": _Row(200_000, 100_000, None, "adaptive"),
    "o4-mini": _Row(200_000, 100_000, None, "adaptive"),
}
"""Families of another vendor, by the beginning of their names."""
_UNKNOWN_MODEL = _Row(_UNKNOWN_WINDOW, 8_192, None, "budget")

_PREFIX = re.compile(r"^(?:[a-z]{2,6}\.)?anthropic[./]")
_SUFFIX = re.compile(r"(?:[-@]\d{8})?(?:-v\d+(?::\d+)?)?$|-latest$")


def model_info(name: str) -> ModelInfo:
    """Return the facts about a model; for an unknown name conservative values and no price."""
    if name == DEMO_MODEL:
        return ModelInfo(name, 200_000, 8_192, 0.0, 0.0, "offline_demo")
    row = _row(name)
    prices = row.prices or (None, None)
    return ModelInfo(name, row.window, row.output, prices[0], prices[1], thinking=row.thinking)


def knows(name: str) -> bool:
    """Return False if the facts about a model are assumed: neither it nor its family is in the table."""
    return name == DEMO_MODEL or _row(name) is not _UNKNOWN_MODEL


def takes_xhigh(name: str) -> bool:
    """True if a model has the effort `xhigh`: the large ones since Opus 4.7, and newer ones than this table."""
    plain = _SUFFIX.sub("", _PREFIX.sub("", name.strip().lower()))
    return plain.startswith("claude-") and _row(name).thinking != "budget" and plain not in _WITHOUT_XHIGH


def is_of_vendor(name: str) -> bool:
    """True for the models of the vendor of the Messages API, on any platform."""
    return _PREFIX.sub("", name.strip().lower()).startswith("claude-")


def known_models() -> tuple[str, ...]:
    """Return the names of the models in the table."""
    return tuple(_TABLE)


def default_max_tokens(info: ModelInfo) -> int:
    """Return the longest answer to request by default, in tokens."""
    return min(info.max_output_tokens, _OWN_CEILING)


def _row(name: str) -> _Row:
    plain = _SUFFIX.sub("", _PREFIX.sub("", name.strip().lower()))
    if plain in _TABLE:
        return _TABLE[plain]
    if plain.startswith("claude-"):
        return _FAMILY
    return next((row for family, row in _OTHER_FAMILIES.items() if plain.startswith(family)), _UNKNOWN_MODEL)


def model_of_family(name: str, present: str) -> str:
    """Return the model for a name such as `haiku`: the newest of that family; any other name is that of a model.

    A family is not known to endpoints of other vendors: there it stands for the present model.
    """
    newest = next((model for model in _TABLE if model.startswith(f"claude-{name.strip().lower()}-")), None)
    if newest is None:
        return name
    return newest if _PREFIX.sub("", present).startswith("claude-") else present
