"""A full-screen terminal coding agent: see everything, steer at any time, allow what happens.

Importing the package costs nothing: it loads neither Textual nor a model SDK.
"""

__version__ = "0.1.0"
