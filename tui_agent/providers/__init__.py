"""Models: the Messages API through its SDK, a scripted stand-in for tests, and the offline demo.

The demo is imported from `tui_agent.providers.demo`, what notes streams from `tui_agent.providers.recorded_streams`, so
that nobody pays for them who does not use them.
"""

from .anthropic_provider import AnthropicProvider
from .model_table import DEMO_MODEL, model_info
from .scripted_provider import Call, Fail, Reply, Say, ScriptedProvider, Think, Wait, call, fail, reply

__all__ = [
    "DEMO_MODEL",
    "AnthropicProvider",
    "Call",
    "Fail",
    "Reply",
    "Say",
    "ScriptedProvider",
    "Think",
    "Wait",
    "call",
    "fail",
    "model_info",
    "reply",
]
