"""The type of the app for parts that work in any: without it Textual's `app` property has an unknown one."""

from textual.app import App


def any_app() -> type[App[object]]:
    """For `app = getters.app(any_app)` in a class body."""
    return App
