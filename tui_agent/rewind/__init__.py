"""Rewind: list the moments to go back to, plan a rewind to one of them, and carry it out."""

from .rewinder import Rewinder

__all__ = ["Rewinder"]
