"""Client for tool servers that speak the Model Context Protocol (MCP).

Importing the package loads nothing of the protocol's SDK; that happens in a thread once a server is configured.
"""
