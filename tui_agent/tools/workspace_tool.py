"""Base class of the tools that work in a workspace."""

from tui_agent.protocol.messages import JsonObject

from .typed_tool import Args, TypedTool
from .workspace import Workspace


class WorkspaceTool(TypedTool[Args]):
    """Tool whose argument `path`, if it has one, names a file or directory of a workspace."""

    def __init__(
        self, workspace: Workspace, name: str, description: str, model: type[Args], *, read_only: bool = False
    ) -> None:
        super().__init__(name, description, model, read_only=read_only)
        self._workspace = workspace
        self.working_directory = workspace.root

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return self._workspace.with_existing_name(arguments)
