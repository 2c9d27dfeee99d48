"""The front end for editors: the Agent Client Protocol on standard input and output.

A client starts `tui-agent acp` and opens sessions; each has a workspace, a workbench and a journal of its own. Only
this room knows the protocol's library, and only `tui-agent acp` imports it.
"""
