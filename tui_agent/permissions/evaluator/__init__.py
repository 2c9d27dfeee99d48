"""The walk over a script: values, directories and effects of its commands, compared with rules and paths."""
