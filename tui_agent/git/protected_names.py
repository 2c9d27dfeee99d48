"""Names that no tool writes, in any mode: version control, hooks, installed packages, our own settings.

They are recognised at any depth and in any spelling, whether they exist or not.
"""

import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache

from .repository_layout import REPOSITORY_NAMES


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROTECTED_NAMES = {
    **dict.fromkeys(REPOSITORY_NAMES, "version control data"),
    ".husky": "commit hooks",
    "node_modules": "installed packages",
    ".tui-agent": "the agent's own settings",
    ".mcp.json": "tool servers that the agent starts",
}
"""Names of directories (or files) that are never written, with their contents."""

DEFINITIONS = {
    ".claude": ("settings*.json", "hooks", "skills", "commands", "agents"),
    ".agents": ("skills",),
}
"""Directories of a project, and patterns of names in them: agents run or read what is there."""

_RUN_LATER = {
    ".git/hooks": "git runs it",
    ".git/config": "git obeys it, and runs programs that it names",
    ".git/info": "git obeys it",
    ".git": "git obeys it",
    ".gitmodules": "git fetches what it names",
    ".gitattributes": "git runs the filters that it names",
    ".husky": "git runs it as a hook",
    ".envrc": "direnv runs it",
    ".vscode": "the editor runs and obeys it",
    ".cursor": "Cursor runs and obeys it",
    ".codex": "Codex runs and obeys it",
    ".claude": "agents run and obey it",
    ".agents": "agents run and obey it",
    ".mcp.json": "agents start the servers that it names",
    ".tui-agent": "tui-agent obeys it",
    ".github/workflows": "GitHub runs it",
    ".github": "GitHub obeys it",
    "node_modules": "programs load their packages from it",
    "agents.md": "agents obey it",
    "claude.md": "agents obey it",
}
"""Programs that run or obey files later by themselves, by names in their paths; a pair of names counts first."""

_PLAIN_DOT_NAMES = _names(
    ".gitignore .dockerignore .npmignore .prettierignore .eslintignore .editorconfig .gitkeep .keep .env.example"
)
"""Names with a dot that no program runs anything from; all others are settings of some program."""
_OBEYED_NAMES = _names(
    "agents.md agent.md agents.override.md claude.md claude.local.md gemini.md qwen.md warp.md opencode.json* "
    "jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml cloudbuild.y*ml buildspec.y*ml "
    "lefthook*.y*ml mise.toml mise.*.toml *.code-workspace sitecustomize.py usercustomize.py *.pth"
)
"""Patterns for other names of what programs run or agents obey by themselves."""

_IGNORABLE_RANGES = ((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
                     (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF))  # fmt: skip


def protected_name(path: str) -> str | None:
    """Return why one of a path's names is protected, or None. Backslashes separate names, too."""
    for name in path.replace("\\", "/").split("/"):
        if len(name) >= 4 and (what := PROTECTED_NAMES.get(fold_name(name))):
            return f"{name} contains {what}"
    return None


def run_later(path: str) -> str:
    """Return who runs or obeys a file later by itself, in words; empty if none is known."""
    names = [fold_name(name) for name in path.split("/") if name]
    for place, name in enumerate(names):
        pair = "/".join(names[place : place + 2])
        if found := _RUN_LATER.get(pair) or _RUN_LATER.get(name):
            return found
    return ""


def names_project_definition(path: str) -> bool:
    """Return True if a path is that of a definition or hook that agents take from a project, or contains some."""
    names = [fold_name(name) for name in path.replace("\\", "/").split("/") if name not in ("", ".")]
    for place, name in enumerate(names):
        if name in DEFINITIONS:
            return place + 1 == len(names) or is_definition(name, names[place + 1])
    return False


def is_definition(directory: str, name: str) -> bool:
    """Return True if agents run or read what has this name in a directory of that name."""
    patterns = DEFINITIONS.get(fold_name(directory), ())
    return any(fnmatchcase(fold_name(name), pattern) for pattern in patterns)


def obeyed_name(path: str) -> str | None:
    """Return the name in a path for which other programs may run or obey the file by themselves, or None."""
    for name in path.replace("\\", "/").split("/"):
        folded = fold_name(name)
        is_setting = folded.startswith(".") and folded.strip(".") and folded not in _PLAIN_DOT_NAMES
        if is_setting or any(fnmatchcase(folded, pattern) for pattern in _OBEYED_NAMES):
            return name
    return None


@lru_cache(maxsize=4_096)
def fold_name(name: str) -> str:
    """Return a file name as the most lenient file system compares it.

    Case, ignorable characters and stream suffixes do not count.
    """
    if name.isascii():
        folded = name.lower()
    else:
        composed = unicodedata.normalize("NFKC", name).casefold()
        folded = "".join(letter for letter in composed if not _is_ignorable(letter))
    return folded.partition(":")[0].rstrip(". ") or folded


def _is_ignorable(letter: str) -> bool:
    code = ord(letter)
    return unicodedata.category(letter) in ("Cf", "Cc") or any(low <= code <= high for low, high in _IGNORABLE_RANGES)
