"""The definitions of a project as the trust question lists them."""

from .definition_text import PromptTemplate
from .records import AgentFile, Definition, Kind, Skill, shortened

HEADINGS: dict[Kind, str] = {
    "skill": "skills, which the model can load",
    "command": "commands, which run when you type their name",
    "agent": "sub-agents, which the model can start",
}


def trust_entry(definition: Definition) -> str:
    """Return the text for the trust question: name, file, what it would run or use, and for most its description."""
    if isinstance(definition, AgentFile):
        tools = "all tools" if definition.tools is None else f"the tools {', '.join(definition.tools) or 'none'}"
        model = f" and the model {definition.model}" if definition.model else ""
        entry = f"{definition.name} ({definition.source.shown}), with {tools}{model}"
        return f"{entry}: {shortened(definition.description)}"
    commands = PromptTemplate.of(definition.body).commands
    runs = f", runs {', '.join(f'`{command}`' for command in commands)}" if commands else ""
    model = f", uses the model {definition.model}" if definition.model else ""
    entry = f"({definition.source.shown}){runs}{model}"
    if isinstance(definition, Skill):
        return f"{definition.name} {entry}: {shortened(definition.description)}"
    return f"/{definition.name} {entry}"
