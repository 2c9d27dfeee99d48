"""The definitions of a project as the trust question lists them."""

from .prompt_template import PromptTemplate
from .records import CommandFile, Definition, Kind, shortened

HEADINGS: dict[Kind, str] = {
    "skill": "skills, which the model can load",
    "command": "commands, which run when you type their name",
    "agent": "sub-agents, which the model can start",
}


def trust_entry(definition: Definition) -> str:
    """Return a definition with its file, and with the shell commands that it would run."""
    if not isinstance(definition, CommandFile):
        return f"{definition.name} ({definition.source.shown}): {shortened(definition.description)}"
    commands = PromptTemplate.of(definition.body).commands
    runs = f", runs {', '.join(f'`{command}`' for command in commands)}" if commands else ""
    model = f", uses the model {definition.model}" if definition.model else ""
    return f"/{definition.name} ({definition.source.shown}){runs}{model}"
