"""The offline model: a scripted policy behind a real Messages API on the loopback interface."""

from .demo_server import DEMO_PACE, DemoServer
from .sample_project import copy_sample_project

__all__ = ["DEMO_PACE", "DemoServer", "copy_sample_project"]
