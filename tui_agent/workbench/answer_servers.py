"""Answers of the user and of the model to what tool servers ask, through the agent's approval gate."""

from typing import TYPE_CHECKING

from tui_agent.mcp.server_questions import (
    QuestionAnswer,
    SampledMessage,
    SamplingAnswer,
    SamplingRequest,
    ServerQuestions,
)
from tui_agent.protocol.errors import ProviderError, ToolError
from tui_agent.protocol.messages import AssistantMessage, JsonObject, Message, TextBlock, UserMessage
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.provider import ModelRequest, SystemPart
from tui_agent.protocol.server_question import ServerQuestion

if TYPE_CHECKING:
    from tui_agent.agent import AgentLoop


class ServerAnswers:
    """Puts the questions of servers to the user of one agent. Without an agent they are declined."""

    def __init__(self) -> None:
        self.loop: AgentLoop | None = None
        """The agent; set once it exists."""

    @property
    def functions(self) -> ServerQuestions:
        """The functions for the servers."""
        return ServerQuestions(ask=self.ask, sample=self.sample, extend_call=self._extend_call)

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        """Ask the user."""
        if self.loop is None:
            return QuestionAnswer("decline")
        decision = await self.loop.ask(_request(question))
        if decision.decision != "approve":
            return QuestionAnswer("decline" if decision.decision == "deny" else "cancel")
        if not question.fields:
            return QuestionAnswer("accept")
        try:
            return QuestionAnswer("accept", question.content(decision.input or {}))
        except ValueError:
            # A front end that does not know forms approved it without values.
            return QuestionAnswer("cancel")

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        """Ask the user, then the model.

        Raises:
            ToolError: the user refused, or the model did not answer.
        """
        if self.loop is None:
            raise ToolError("No user can answer here.")
        model = self.loop.provider.model
        limit = min(request.max_tokens, model.max_output_tokens)
        question = ServerQuestion(server=request.server, kind="sampling", message=f"to {model.name}")
        decision = await self.loop.ask(_request(question, _sampling_args(request, model.name, limit)))
        if decision.decision != "approve":
            raise ToolError("The user rejected the sampling request.")
        try:
            answer = await self.loop.answer_beside(
                ModelRequest(
                    messages=tuple(_message(one, model.name) for one in request.messages),
                    system=(SystemPart(request.system),) if request.system else (),
                    max_tokens=limit,
                    temperature=request.temperature,
                    cache=False,
                    conversation_id=f"{self.loop.history.id}/{request.server}",
                )
            )
        except ProviderError as error:
            raise ToolError(f"The model did not answer: {error}") from error
        return SamplingAnswer(answer.text, answer.model, answer.stop_reason)

    def _extend_call(self, call_id: str, seconds: float) -> None:
        if self.loop is not None:
            self.loop.extend_call(call_id, seconds)


def _request(question: ServerQuestion, args: JsonObject | None = None) -> ApprovalRequest:
    """Return the request for approval that carries a question."""
    return ApprovalRequest(
        call_id="",
        digest="",
        tool=f"mcp__{question.server}",
        args=args or {},
        summary=question.message,
        reason=f"the MCP server {question.server} asks",
        options=("approve", "deny") if question.kind == "sampling" else ("approve", "deny", "skip"),
        question=question,
    )


def _sampling_args(request: SamplingRequest, model: str, limit: int) -> JsonObject:
    """Return everything that the model would get, for the dialog."""
    args: JsonObject = {"model": model, "max_tokens": limit}
    if request.system:
        args["system"] = request.system
    for number, message in enumerate(request.messages, 1):
        parts = [block.text if isinstance(block, TextBlock) else f"[{block.type}]" for block in message.blocks]
        args[f"{number}. {message.role}"] = "\n".join(parts)
    return args


def _message(one: SampledMessage, model: str) -> Message:
    if one.role == "user":
        return UserMessage(content=one.blocks)
    return AssistantMessage(content=tuple(block for block in one.blocks if isinstance(block, TextBlock)), model=model)
