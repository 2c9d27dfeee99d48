"""The prelude: takes the terminal at once, shows the start page, and keeps what is typed while the app is imported.

It imports a few small modules of the standard library, and nothing else of tui-agent.
"""
