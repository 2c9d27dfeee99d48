"""The model's input: conversation history, layers of the system prompt, instruction files (AGENTS.md)."""

from .guard import Compaction, ContextGuard, GuardOptions
from .history import ConversationHistory, HistoryEntry, HistorySnapshot, MessageView
from .instructions import (
    cut_instructions,
    foreign_instructions,
    load_instructions,
    load_own_instructions,
    load_project_instructions,
)
from .registry import (
    CONTEXT_LAYER,
    LEGACY_LAYER,
    OUTPUT_LAYER,
    SYSTEM_LAYER,
    ContextLayer,
    ContextRegistry,
    LayerChange,
    RegistrySnapshot,
    system_parts,
    write_layer,
)
from .repair import UNANSWERED, PairingCheck, RepairResult, repair_messages
from .tokens import estimate_content, estimate_message, estimate_text

__all__ = [
    "CONTEXT_LAYER",
    "LEGACY_LAYER",
    "OUTPUT_LAYER",
    "SYSTEM_LAYER",
    "UNANSWERED",
    "Compaction",
    "ContextGuard",
    "ContextLayer",
    "ContextRegistry",
    "ConversationHistory",
    "GuardOptions",
    "HistoryEntry",
    "HistorySnapshot",
    "LayerChange",
    "MessageView",
    "PairingCheck",
    "RegistrySnapshot",
    "RepairResult",
    "cut_instructions",
    "estimate_content",
    "estimate_message",
    "estimate_text",
    "foreign_instructions",
    "load_instructions",
    "load_own_instructions",
    "load_project_instructions",
    "repair_messages",
    "system_parts",
    "write_layer",
]
