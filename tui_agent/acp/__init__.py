"""The front end for editors: the Agent Client Protocol on standard input and output.

A client starts `tui-agent acp` and opens sessions; each has a workspace, an engine and a journal of its own. `cli`
implements `SessionHost`. Only this room knows the protocol's library, and only `tui-agent acp` imports it.
"""
