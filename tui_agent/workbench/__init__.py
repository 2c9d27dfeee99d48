"""One open session: the agent with its settings, rules, jobs, tool servers, hooks, definitions, prompts and models."""
