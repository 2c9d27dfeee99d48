"""The offline model: a scripted policy behind a real Messages API on the loopback interface."""

from .demo_server import DEMO_PACE, DemoServer, demo_server
from .guided_tour import copy_sample_project

__all__ = ["DEMO_PACE", "DemoServer", "copy_sample_project", "demo_server"]
