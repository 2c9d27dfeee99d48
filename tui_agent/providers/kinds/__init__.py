"""Endpoints of other kinds than the Messages API with a key: the APIs of OpenAI, and clouds that host models.

Imported only for a model of such an endpoint.
"""
