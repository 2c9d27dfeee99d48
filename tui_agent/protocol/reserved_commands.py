"""Names of the `/` commands of the screen."""

RESERVED_COMMANDS = frozenset(
    (
        *("quit", "mouse", "search", "copy", "thinking", "help", "rewind", "stop", "mode", "theme", "cost", "compact"),
        *("context", "report", "permissions", "timeline", "files", "tools", "skills", "hooks", "replay", "jobs", "mcp"),
        *("export", "doctor", "model", "effort", "init", "rename", "resume", "clear", "fork", "demo"),
    )
)
"""No skill or command file replaces one of these, whatever front end is used."""
