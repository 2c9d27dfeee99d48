"""A `/` command that a file of the user or the project defines, and the names that it may not have."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """A command file or skill, for menus and help."""

    slash: str
    """Name without the slash."""
    argument: str = ""
    """Its argument, such as `[file]`."""
    help: str = ""
    """One line."""

    @property
    def usage(self) -> str:
        """The command with its argument and its help, as in `/test [file]  Run the tests`."""
        return f"{f'/{self.slash} {self.argument}'.rstrip()}  {self.help}"


RESERVED_COMMANDS = frozenset(
    (
        *("quit", "mouse", "search", "copy", "thinking", "help", "rewind", "stop", "mode", "theme", "cost", "compact"),
        *("context", "report", "permissions", "timeline", "files", "tools", "skills", "hooks", "replay", "jobs", "mcp"),
        *("diff", "export", "doctor", "model", "effort", "init", "rename", "resume", "clear", "fork", "demo"),
        *("settings", "findings", "add-dir", "stats", "btw", "tasks"),
    )
)
"""No skill or command file replaces one of these, whatever front end is used."""
