"""A `/` command that a file of the user or the project defines."""

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
