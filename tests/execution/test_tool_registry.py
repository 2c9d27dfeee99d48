from tests.execution.kit import ScriptedTool
from tui_agent.execution.tool_registry import ToolRegistry


def test_tools_are_found_by_their_exact_name() -> None:
    tool = ScriptedTool("read")
    registry = ToolRegistry([tool])

    assert registry.find("read") is tool
    assert registry.find("Read") is None
    assert "read" in registry


def test_order_is_kept_and_removing_is_forgiving() -> None:
    registry = ToolRegistry([ScriptedTool("b"), ScriptedTool("a")])
    registry.remove("b")
    registry.remove("b")
    registry.add(ScriptedTool("c"))

    assert registry.names == ("a", "c")
    assert [spec.name for spec in registry.specs] == ["a", "c"]
    assert [tool.name for tool in registry] == ["a", "c"]


def test_the_nearest_names_come_first_whatever_their_case() -> None:
    registry = ToolRegistry([ScriptedTool(name) for name in ("read", "write", "edit", "glob")])

    assert registry.nearest("Raed")[0] == "read"
    assert registry.nearest("WRITE_")[0] == "write"
    assert registry.nearest("zzzz") == ()
