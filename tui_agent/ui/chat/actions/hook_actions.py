"""Actions on hooks."""

from tui_agent.ui.bridge.queries import NOT_READY

from .action_context import ActionContext, Handlers


class HookActions:
    """Show the hooks."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {"chat.hooks": self._hooks}
        """Actions by id of their command."""

    def _hooks(self, _: str) -> bool:
        from tui_agent.ui.dialogs.hook_page import hooks_text

        context, hooks = self._context, self._context.bridge.hooks
        if context.bridge.status.pending:
            context.say(NOT_READY, wrong=True)
            return False
        if not hooks.list():
            context.say("No hook is defined: neither [[hooks]] in your settings nor hooks in .claude/settings.json.")
            return True
        context.show_page("Hooks", lambda width: hooks_text(hooks.list(), width))
        return True
