"""Language servers that `doctor` offers if they are installed; without an entry in the settings, none starts."""

import json
import shutil
from collections.abc import Iterator

from tui_agent.protocol.server_entries import LanguageServer

_PYTHON = ("*.py", "*.pyi")
_KNOWN = {
    "pyright": ("pyright-langserver --stdio", _PYTHON),
    "basedpyright": ("basedpyright-langserver --stdio", _PYTHON),
    "ruff": ("ruff server", _PYTHON),
    "typescript": ("typescript-language-server --stdio", ("*.ts", "*.tsx", "*.mts", "*.js", "*.jsx", "*.mjs")),
    "gopls": ("gopls", ("*.go",)),
    "rust-analyzer": ("rust-analyzer", ("*.rs",)),
    "clangd": ("clangd", ("*.c", "*.h", "*.cc", "*.cpp", "*.hpp")),
}
"""Command line and files by name."""
_BETTER = {"pyright": "basedpyright"}
"""Servers that need not be offered beside another one."""


def installed_servers() -> Iterator[tuple[str, LanguageServer]]:
    """Yield the known servers on PATH. Blocks."""
    found = {name for name, (command, _) in _KNOWN.items() if shutil.which(command.split()[0]) is not None}
    for name, (command, files) in _KNOWN.items():
        if name in found and _BETTER.get(name) not in found:
            yield name, LanguageServer.model_validate({"command": command, "files": files})


def settings_lines(name: str, server: LanguageServer) -> str:
    """Return the settings that configure a server."""
    return f"[lsp.{name}]\ncommand = {json.dumps(server.shown)}\nfiles = {json.dumps(list(server.files))}"
