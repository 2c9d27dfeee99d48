"""Skills, commands and sub-agents that the user or a project defines in Markdown files."""
