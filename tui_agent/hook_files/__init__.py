"""Hook files in the form that other agents use: `hooks` in `.claude/settings.json`."""
