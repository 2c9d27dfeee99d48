"""git: the one place that starts it for tui-agent itself, and what a repository's settings, links and index tell."""
