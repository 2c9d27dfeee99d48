"""Sub-commands of `tui-agent`, one file each; `command_line.py` imports them on use."""
