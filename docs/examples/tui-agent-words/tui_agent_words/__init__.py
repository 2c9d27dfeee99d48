"""An example of a plugin: a tool, a hook and a provider. The theme is the file `paper.toml` beside this one."""

from collections.abc import AsyncIterator

from tui_agent import (
    BeforeTool,
    BeforeToolAnswer,
    Continue,
    DenyCall,
    HookBus,
    ModelInfo,
    ModelRequest,
    StreamEnded,
    StreamEvent,
    StreamStarted,
    TextDelta,
    tool,
)


@tool(read_only=True)
def count_words(text: str) -> str:
    """Count the words of a text."""
    return f"{len(text.split())} words"


hooks = HookBus()


@hooks.before_tool
def no_filler(question: BeforeTool) -> BeforeToolAnswer:
    """Deny calls that write filler text."""
    if "lorem ipsum" in str(question.arguments).lower():
        return DenyCall("write the real text instead of lorem ipsum")
    return Continue()


class EchoProvider:
    """Repeats the last message, for every model of the name `echo/…`."""

    def __init__(self, reference: str) -> None:
        self.model = ModelInfo(reference, input_price=0.0, output_price=0.0)

    async def prepare(self) -> None:
        """Nothing to import, nothing to connect."""

    async def aclose(self) -> None:
        """Nothing to close."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Answer with the text of the last message."""
        yield StreamStarted(self.model.name)
        yield TextDelta(request.messages[-1].text)
        yield StreamEnded("end_turn")
