"""The applications: themes, terminal driver, and the apps before and around the chat."""
