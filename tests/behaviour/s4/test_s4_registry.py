"""The layers of the system prompt (S4-27 … S4-32)."""

import pytest

from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.context import ContextLayer, ContextRegistry, LayerChange, system_parts
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import ImageBlock, TextBlock
from tui_agent.providers import ScriptedProvider


def layer(name: str, text: str = "", priority: int = 50, **more: object) -> ContextLayer:
    return ContextLayer.model_validate({"name": name, "content": text or name, "priority": priority, **more})


def test_s4_27_a_layer_has_the_required_fields() -> None:
    blocks = (TextBlock(text="look at"), ImageBlock(media_type="image/png", data=""), TextBlock(text="this"))
    made = ContextLayer(
        name="n", content=blocks, priority=3, tags=("system", "x"), owner="me", merge_parent=True, metadata={"k": 1}
    )

    assert (made.name, made.priority, made.tags, made.owner) == ("n", 3, ("system", "x"), "me")
    assert (made.merge_parent, made.metadata, made.text) == (True, {"k": 1}, "look at\nthis")


def test_s4_28_the_text_of_a_tag_is_sorted_by_priority_then_time_with_or_without_the_parent() -> None:
    registry = ContextRegistry([layer("late", priority=90), layer("b"), layer("a"), layer("note", tags=("note",))])

    assert registry.flat("system") == "b\n\na\n\nlate"
    registry.set(layer("b", "b again"))
    registry.set_parent(ContextRegistry([layer("above", priority=1)]))
    assert registry.flat("system", separator="|") == "above|a|b again|late"
    assert registry.flat("system", separator="|", include_parent=False) == "a|b again|late"
    assert registry.flat("note") == "note"


def test_s4_29_a_parents_layers_are_visible_and_its_changes_are_published() -> None:
    root, middle, child = ContextRegistry(), ContextRegistry(), ContextRegistry([layer("own")])
    middle.set_parent(root)
    child.set_parent(middle)
    heard: list[LayerChange] = []
    child.listen(heard.append)

    root.set(layer("news", priority=1))
    root.remove("news")
    root.set(layer("news", "more", priority=1))

    assert [(change.name, change.kind, change.registry) for change in heard] == [
        ("news", "set", root),
        ("news", "removed", root),
        ("news", "set", root),
    ]
    assert child.flat() == "more\n\nown"


def test_s4_29_a_cycle_of_parents_is_refused() -> None:
    root, child = ContextRegistry(), ContextRegistry()
    child.set_parent(root)

    for parent in (child, root):
        with pytest.raises(ConfigurationError, match="own ancestor"):
            root.set_parent(parent)

    assert root.parent is None


def test_s4_30_a_childs_layer_replaces_or_follows_its_parents() -> None:
    parent = ContextRegistry([layer("rules", "be kind"), layer("tone", "be short")])
    child = ContextRegistry([layer("rules", "be strict"), layer("tone", "and warm", merge_parent=True)])
    child.set_parent(parent)

    assert child.flat() == "be strict\n\nbe short\n\nand warm"
    assert parent.flat() == "be kind\n\nbe short"


def test_s4_32_stable_layers_come_first_and_are_marked() -> None:
    loop = AgentLoop(AgentLoopConfig(ScriptedProvider(), system="Who.", context="What.", layers=[layer("rules")]))

    parts = system_parts(loop.history.registry)

    assert [(part.text, part.stable) for part in parts] == [("Who.\n\nrules", True), ("What.", False)]
    before = parts[0]
    loop.history.registry.set(layer("agentloop.context", "Another task.", 100))
    assert system_parts(loop.history.registry)[0] == before, "a change of the task keeps the cached prefix"
