"""The full-screen app for other programs: `AgentApp(agent).run()`."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, ClassVar

from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.bridge.agent_bridge import AgentBridge

from .themes import DEFAULT_THEME
from .tui_agent_app import TuiAgentApp

if TYPE_CHECKING:
    from tui_agent.workbench.workbench import AgentLoop

_STYLES = Path(__file__).parents[1] / "chat" / "chat.tcss"


class AgentApp(TuiAgentApp):
    """The full-screen app around an agent that another program made.

    It is a Textual app: `run()` shows it until the user quits, `run_async()` does so inside an event loop, and a
    subclass may add keys and screens of its own. The user answers the agent's questions in the app's dialogs.
    """

    # Absolute, because Textual looks for a relative path beside the subclass. A subclass lists its styles after these.
    CSS_PATH: ClassVar[list[str | PurePath] | str | PurePath | None] = [_STYLES]

    def __init__(
        self,
        agent: "AgentLoop",
        *,
        theme: str = DEFAULT_THEME,
        themes_dirs: Sequence[Path] = (),
        prompt: str | None = None,
        label: str = "",
        ideas: Sequence[str] = (),
        surroundings: TerminalEnvironment | None = None,
    ) -> None:
        """Create the app; nothing runs yet.

        Args:
            agent: the agent, with its tools; nothing is stored unless the program does so.
            theme: name of the first theme.
            themes_dirs: more folders of theme files.
            prompt: sent at once.
            label: text beside the model's name.
            ideas: prompts to suggest before the first message.
            surroundings: colours and motion; None: as the environment asks.
        """
        agent.gate.interactive = True
        workspace = agent.config.workspace
        super().__init__(
            AgentBridge(agent, agent.bus),
            theme=theme,
            themes_dirs=themes_dirs,
            prompt=prompt,
            model=agent.provider.model.name,
            label=label,
            ideas=ideas,
            surroundings=surroundings,
            place=WorkingDirectory.of(Path(workspace), Path.home()) if workspace is not None else None,
        )
