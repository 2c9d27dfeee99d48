"""Protected names and paths, under their former place."""

from tui_agent.git.protected_names import DEFINITIONS, PROTECTED_NAMES, fold_name, protected_name
from tui_agent.git.protected_tree import ProtectedTree

__all__ = ["DEFINITIONS", "PROTECTED_NAMES", "ProtectedTree", "fold_name", "protected_name"]
