"""One thread at a time imports parts of the engine.

Two threads that import packages which depend on each other can each wait for a module that the other one is importing.
Python then raises an error in one of them.
"""

import threading

IMPORTING = threading.RLock()
"""Held by a thread while it imports parts of the engine that the first screen does not need."""
