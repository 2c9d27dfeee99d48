"""Records in the formats of other programs: which of their fields are used here, what the others mean, and names."""

from dataclasses import dataclass

from .messages import JsonObject

FOREIGN_TOOL_NAMES: dict[str, tuple[str, ...]] = {
    "bash": ("Bash",),
    "read": ("Read", "NotebookRead"),
    "write": ("Write",),
    "edit": ("Edit", "MultiEdit"),
    "notebook_edit": ("NotebookEdit",),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "agent": ("Task", "Agent"),
    "fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
    "todo": ("TodoWrite",),
    "ask_user": ("AskUserQuestion",),
    "present_plan": ("ExitPlanMode",),
    "skill": ("Skill",),
    "bash_output": ("BashOutput", "TaskOutput"),
    "kill_bash": ("KillShell", "KillBash", "TaskStop"),
}
"""The other agent's name of each tool, and further ones that matchers use."""

LENIENT_MODES = ("default", "acceptEdits", "bypassPermissions", "auto")
"""Permission modes of other agents that restrict nothing."""


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """The fields of one kind of record. None and False are like a field that is not there."""

    used: frozenset[str]
    harmless: frozenset[str]
    """Fields without a use here that change nothing about what runs, when it runs and what its answer means."""
    needed: frozenset[str] = frozenset()
    """Fields without a use here that change the meaning of the record."""
    guards: bool = False
    """True if the record runs something or restricts something: then an unknown field may change its meaning, too."""

    def changing(self, record: JsonObject) -> tuple[str, ...]:
        """Return the fields because of which the record must not be used."""
        return tuple(name for name in self._unused(record) if name in self.needed or self.guards)

    def ignored(self, record: JsonObject) -> tuple[str, ...]:
        """Return the unknown fields that are left out, although the record is used."""
        return tuple(name for name in self._unused(record) if not (name in self.needed or self.guards))

    def _unused(self, record: JsonObject) -> list[str]:
        known = self.used | self.harmless
        set_names = (name for name, value in record.items() if value is not None and value is not False)
        return [name for name in set_names if name not in known]


def as_list(names: tuple[str, ...]) -> str:
    """Return names of fields for a message, each on one short line."""
    return ", ".join(repr(name[:60]) for name in names[:5]) + ("" if len(names) <= 5 else f" and {len(names) - 5} more")
