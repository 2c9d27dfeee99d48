"""The connection between the screen and the agent."""
