"""Shared types: messages, events, tools, permissions, errors. Imports no other package of tui_agent."""

from . import events
from .bus import EventBus, EventScope, Publisher, Subscription
from .cancellation import CancellationToken
from .envelope import Envelope, Origin, read_envelope
from .function_tool import function_tool
from .messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    user_message,
)
from .tool import Tool, ToolContext, ToolResult, ToolSpec

__all__ = [
    "AssistantMessage",
    "CancellationToken",
    "DocumentBlock",
    "Envelope",
    "EventBus",
    "EventScope",
    "ImageBlock",
    "JsonObject",
    "Message",
    "Origin",
    "Publisher",
    "Subscription",
    "TextBlock",
    "ThinkingBlock",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolResult",
    "ToolResultMessage",
    "ToolSpec",
    "Usage",
    "UserMessage",
    "events",
    "function_tool",
    "read_envelope",
    "user_message",
]
